#include "experiments/bench/bench.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/blas/products.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/nearest.hpp"

namespace heed {

void expect_known(std::string const& option, std::string const& name, std::vector<std::string> const& known) {
  if (std::ranges::find(known, name) == known.end())
    throw ConfigError(option, fmt::format("there is no '{}'{} (there are {})", name, did_you_mean(name, known), fmt::join(known, ", ")));
}

Exit bench(BenchOptions const& options, std::ostream& out) {
  if (!options.what.empty()) expect_known("bench", options.what, Registry<BenchTopic>::names());
  expect_known("--precision", options.precision, {"float32", "bfloat16"});
  WithProducts const chosen({.bfloat16 = options.precision == "bfloat16"});
  for (auto const& topic : Registry<BenchTopic>::all()) {
    if (options.what.empty() || options.what == topic.name) topic.run(options, out);
  }
  return Exit::done;
}

}  // namespace heed
