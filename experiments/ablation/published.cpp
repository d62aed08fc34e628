#include "experiments/ablation/published.hpp"

#include <fmt/format.h>

#include "experiments/ablation/arms.hpp"
#include "experiments/config/scalar.hpp"
#include "experiments/config/table.hpp"

namespace heed {

namespace {

double number_at(Yaml const& node, std::string const& key) {
  auto const value = node.kind == Yaml::NodeKind::scalar ? parse_real(node.text) : std::nullopt;
  if (!value)
    throw ConfigError(node.place, fmt::format("{}: wants a number, or numbers by step {{1000: 22.5}}, found {}", key, found(node)));
  return *value;
}

Published one_of(std::string const& name, Yaml const& node) {
  auto const key = "published: " + name;
  Published published{name, {}, 0};
  if (node.kind != Yaml::NodeKind::map) {
    published.value = number_at(node, key);
    return published;
  }
  for (auto const& entry : node.entries) {
    auto const step = parse_integer(entry.key);
    if (!step || *step < 0) throw ConfigError(entry.place, fmt::format("{}: '{}' is not a step", key, entry.key));
    if (!published.curve.empty() && *step <= published.curve.back().first)
      throw ConfigError(entry.place, fmt::format("{}: step {} after step {}", key, *step, published.curve.back().first));
    published.curve.emplace_back(*step, number_at(entry.value, key));
  }
  if (published.curve.empty()) throw ConfigError(node.place, key + ": has no numbers");
  published.value = published.curve.back().second;
  return published;
}

}  // namespace

std::vector<Published> published_of(Document const& file) {
  std::vector<Published> all;
  Yaml const* const node = value_at(file, "published");
  if (node == nullptr) return all;
  if (node->kind != Yaml::NodeKind::map)
    throw ConfigError(node->place, fmt::format("published: wants numbers by whose they are, {{a paper: 28.1}}, found {}", found(*node)));
  for (auto const& entry : node->entries) all.push_back(one_of(entry.key, entry.value));
  return all;
}

std::optional<std::string> beside_published(Published const& published, std::string const& arm, Estimate const& measured,
                                            std::int64_t steps) {
  if (!published.curve.empty() && published.curve.back().first != steps) return std::nullopt;
  auto const shown = [](double value) { return short_number(value, 4); };
  if (!measured.interval) return fmt::format("{}: {}; {} reports {}", arm, shown(measured.mean), published.name, shown(published.value));
  auto const [low, high] = *measured.interval;
  return fmt::format("{}: {} [{}, {}]; {} reports {}, which lies {}", arm, shown(measured.mean), shown(low), shown(high), published.name,
                     shown(published.value),
                     published.value < low    ? "below"
                     : published.value > high ? "above"
                                              : "inside");
}

}  // namespace heed
