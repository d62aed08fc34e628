#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/config/yaml.hpp"

namespace heed {

// Reads YAML files of data (grammars, the catalogue) as configurations are read, but mistakes are FileErrors.

/// parse_yaml of a data file's text. Throws FileError "PATH:LINE:COLUMN: …".
Yaml parse_data(std::string_view text, std::string const& path);
/// Throws FileError "PATH:LINE:COLUMN: message".
[[noreturn]] void refuse(Location const& location, std::string const& message);
/// The entries of a non-empty map; `what` names it in messages. If `known` has keys, there may be no others.
std::span<Yaml::Entry const> entries_of(Yaml const& node, std::string_view what, std::vector<std::string> const& known = {});
/// A scalar's text.
std::string const& text_value(Yaml const& node, std::string_view what);
/// A real number, low ≤ number ≤ high.
double number_value(Yaml const& node, std::string const& what, double low, double high);

}  // namespace heed
