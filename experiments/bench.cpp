#include "experiments/bench.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "experiments/config.hpp"
#include "experiments/nearest.hpp"
#include "experiments/products.hpp"

namespace heed {

namespace {

struct Topic {
  std::string name;
  void (*run)(BenchOptions const&, std::ostream&);
};
std::vector<Topic> const topics{{"gpt", bench_gpt}, {"attention", bench_attention}};

}  // namespace

std::vector<std::string> bench_topics() {
  std::vector<std::string> names;
  for (auto const& topic : topics) names.push_back(topic.name);
  return names;
}

Exit bench(BenchOptions const& options, std::ostream& out) {
  use_products(options.products, options.precision);
  bool found = false;
  for (auto const& topic : topics) {
    if (!options.what.empty() && options.what != topic.name) continue;
    found = true;
    topic.run(options, out);
  }
  if (found) return Exit::done;
  auto const names = bench_topics();
  throw ConfigError(Place{std::make_shared<std::string>("bench")}, fmt::format("there is no topic '{}'{} (there are {})", options.what,
                                                                               did_you_mean(options.what, names), fmt::join(names, ", ")));
}

}  // namespace heed
