#include "experiments/train/optimizer_for.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "autograd/memory.hpp"
#include "experiments/config/nearest.hpp"

namespace heed {

namespace {

/// A name with a * for each of its numbers: blocks.*.mlp.up.weight.
std::string of_any_layer(std::string_view name) {
  std::string pattern;
  for (std::size_t begin = 0; begin < name.size();) {
    std::size_t const end = std::min(name.find('.', begin), name.size());
    auto const part = name.substr(begin, end - begin);
    pattern += (begin > 0 ? "." : "") + std::string(part.find_first_not_of("0123456789") == part.npos ? "*" : part);
    begin = end + 1;
  }
  return pattern;
}

/// Patterns that match something: names, and all their beginnings with ".*", with the numbers in them and without.
std::vector<std::string> patterns_of(Parameters const& parameters) {
  std::vector<std::string> all;
  for (auto const& [name, parameter] : parameters.all()) {
    for (auto const& each : {name, of_any_layer(name)}) {
      all.push_back(each);
      for (auto dot = each.rfind('.'); dot != each.npos && dot > 0; dot = each.rfind('.', dot - 1))
        all.push_back(each.substr(0, dot) + ".*");
    }
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::string advice(std::string const& pattern, Parameters const& parameters) {
  auto nearest = did_you_mean(pattern, patterns_of(parameters));
  if (!nearest.empty()) return nearest;
  std::vector<std::string> names;
  for (auto const& [name, parameter] : parameters.all()) names.push_back(name);
  return fmt::format("; there are {}", joined_messages(names));
}

}  // namespace

std::unique_ptr<Optimizer> optimizer_for(LoadedExperiment const& experiment, Parameters const& parameters) {
  Choice const& choice = experiment.settings.train.optimizer;
  auto const refuse = [&](std::string const& message, std::string const& more) {
    std::string const key = "train." + message.substr(0, message.find(": "));
    throw ConfigError(location_of(experiment.document, key), "train." + message + more);
  };
  auto const& groups = optimizer_settings(choice).groups.items;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    auto const& pattern = groups[i].match;
    if (std::ranges::none_of(parameters.all(), [&](auto const& each) { return matches(pattern, each.first); }))
      refuse(fmt::format("optimizer.groups.{}.match: '{}' matches no parameter", i, pattern), advice(pattern, parameters));
  }
  try {
    return make_optimizer(choice, parameters);
  } catch (OutOfMemory const&) {
    throw;
  } catch (Error const& error) {
    refuse(error.what(), "");
    throw;
  }
}

}  // namespace heed
