#include "experiments/bench.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "autograd/products.hpp"
#include "experiments/config.hpp"
#include "experiments/nearest.hpp"

namespace heed {

namespace {

struct Topic {
  std::string name;
  void (*run)(BenchOptions const&, std::ostream&);
};
std::vector<Topic> const topics{
    {"gpt", bench_gpt}, {"training", bench_training}, {"attention", bench_attention}, {"ops", bench_ops}, {"scaling", bench_scaling}};

}  // namespace

std::vector<std::string> bench_topics() {
  std::vector<std::string> names;
  for (auto const& topic : topics) names.push_back(topic.name);
  return names;
}

void expect_known(std::string const& option, std::string const& name, std::vector<std::string> const& known) {
  if (std::ranges::find(known, name) == known.end())
    throw ConfigError(Place{std::make_shared<std::string>(option)},
                      fmt::format("there is no '{}'{} (there are {})", name, did_you_mean(name, known), fmt::join(known, ", ")));
}

Exit bench(BenchOptions const& options, std::ostream& out) {
  if (!options.what.empty()) expect_known("bench", options.what, bench_topics());
  expect_known("--precision", options.precision, {"float32", "bfloat16"});
  WithProducts const chosen({.bfloat16 = options.precision == "bfloat16"});
  for (auto const& topic : topics) {
    if (options.what.empty() || options.what == topic.name) topic.run(options, out);
  }
  return Exit::done;
}

}  // namespace heed
