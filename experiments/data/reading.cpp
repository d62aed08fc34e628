#include "experiments/data/reading.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/scalar.hpp"

namespace heed {

Yaml parse_data(std::string_view text, std::string const& path) try { return parse_yaml(text, path); } catch (ConfigError const& error) {
  throw FileError(error.what());
}

void refuse(Location const& location, std::string const& message) { throw FileError(to_string(location) + ": " + message); }

std::span<Yaml::Entry const> entries_of(Yaml const& node, std::string_view what, std::vector<std::string> const& known) {
  if (node.kind != Yaml::NodeKind::map || node.entries.empty())
    refuse(node.location, fmt::format("{} must be keys with values, not {}", what, found(node)));
  for (auto const& [key, location, value] : node.entries)
    if (!known.empty() && std::ranges::find(known, key) == known.end())
      refuse(location, fmt::format("unknown key {} in {}{}", shown(key), what, did_you_mean(key, known)));
  return node.entries;
}

std::string const& text_value(Yaml const& node, std::string_view what) {
  if (node.kind != Yaml::NodeKind::scalar) refuse(node.location, fmt::format("{} must be a string, not {}", what, found(node)));
  return node.text;
}

double number_value(Yaml const& node, std::string const& what, double low, double high) {
  auto const number = node.kind == Yaml::NodeKind::scalar ? parse_real(node.text) : std::nullopt;
  if (!number || *number < low || *number > high)
    refuse(node.location, fmt::format("{} must be a number from {} to {}, not {}", what, low, high, found(node)));
  return *number;
}

}  // namespace heed
