#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "experiments/config/yaml.hpp"
#include "nn/settings.hpp"

namespace heed {

/// Numbers as written in a configuration: digits with an optional sign; reals with an optional point and exponent, finite. No leading
/// zeros; the whole text must match.
std::optional<Index> parse_integer(std::string_view text);
std::optional<double> parse_real(std::string_view text);
/// true/false, yes/no, on/off.
std::optional<bool> parse_truth(std::string_view text);

/// The shortest text with a point that reads back as the same double, for heed, YAML 1.1 and YAML 1.2: "0.001", "3.0", "1.0e-05".
std::string print_real(double value);

/// Why a value could not be read: the value (perhaps an item of a list), its position inside the field ("[2]"), and advice.
struct Misfit {
  Yaml const& node;
  std::string where;
  std::string hint;
};

/// Reads a value of the field's type and range from a node into its target; nothing on success. Not for sections.
std::optional<Misfit> read_value(Yaml const& node, Field const& field);

/// What a field accepts: "an integer ≥ 1", "one of adam, sgd", "a list of numbers ≥ 0 and < 1"; `item`: what an item of its list may be.
std::string wanted(Field const& field, bool item = false);

/// The contents of a node: "nothing", "a list", "a section", "'3.5'", "the text '3' in quotes".
std::string found(Yaml const& node);

/// The field's current value, as a scalar, a list or null (for an empty optional). Not for sections.
Yaml value_of(Field const& field);

}  // namespace heed
