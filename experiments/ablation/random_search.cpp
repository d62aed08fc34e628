// `tune: {random: {train.optimizer.lr: {log: [1.0e-4, 1.0e-2]}, model.dropout: [0, 0.1]}, trials: 12}`: points drawn at random (Bergstra
// and Bengio 2012).

#include <cmath>
#include <set>

#include <fmt/format.h>

#include "autograd/random.hpp"
#include "experiments/ablation/arms.hpp"
#include "experiments/config/scalar.hpp"

namespace heed {

namespace {

ConfigError not_drawn(Yaml const& node, std::string const& key) {
  return {node.location, fmt::format("tune: random: {}: wants {{log: [a, b]}} with 0 < a < b, {{uniform: [a, b]}} with a < b, or a list of "
                                     "values, found {}",
                                     key, found(node))};
}

/// The value at a share of the range; three digits are enough, and read well in names.
Yaml drawn(Yaml const& node, std::string const& key, double share) {
  if (node.kind == Yaml::NodeKind::list && !node.items.empty())
    return node.items[static_cast<std::size_t>(share * static_cast<double>(node.items.size()))];
  auto const ends = [&](char const* law, double above) -> std::optional<std::pair<double, double>> {
    auto const* const range = node.inside(law);
    if (range == nullptr || node.entries.size() != 1 || range->items.size() != 2) return std::nullopt;
    auto const low = parse_real(range->items[0].text), high = parse_real(range->items[1].text);
    return low && high && *low > above && *low < *high ? std::optional(std::pair(*low, *high)) : std::nullopt;
  };
  double value = 0;
  if (auto const log = ends("log", 0))
    value = log->first * std::pow(log->second / log->first, share);
  else if (auto const uniform = ends("uniform", -HUGE_VAL))
    value = uniform->first + (uniform->second - uniform->first) * share;
  else
    throw not_drawn(node, key);
  auto result = Yaml::scalar(fmt::format("{:#.3g}", value));
  result.location = node.location;
  return result;
}

}  // namespace

std::vector<std::vector<Assignment>> random_points(Yaml const& node, Yaml const* trials) {
  if (node.kind != Yaml::NodeKind::map || node.entries.empty()) throw not_drawn(node, "KEY");
  auto const count = trials != nullptr && trials->kind == Yaml::NodeKind::scalar ? parse_integer(trials->text) : std::nullopt;
  if (!count || *count < 1 || static_cast<double>(*count) > max_arms)
    throw ConfigError(trials != nullptr ? trials->location : node.location,
                      "tune: random wants `trials`, how many points are drawn: trials: 12");
  std::vector<std::vector<Assignment>> points;
  std::set<std::string> seen;
  auto const wanted = static_cast<std::uint64_t>(*count);
  for (std::uint64_t draw = 0; points.size() < wanted; ++draw) {
    if (draw > 100 * wanted) throw ConfigError(node.location, fmt::format("tune: random has no {} different points", wanted));
    std::vector<Assignment> point;
    std::string text;
    for (auto const& entry : node.entries) {
      point.push_back({entry.key, drawn(entry.value, entry.key, Stream(0, "random search").child(entry.key).uniform(draw))});
      text += emit_line(point.back().value) + " ";
    }
    if (seen.insert(text).second) points.push_back(std::move(point));
  }
  return points;
}

}  // namespace heed
