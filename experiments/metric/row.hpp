#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "autograd/index.hpp"

namespace heed {

/// A row of metrics: named numbers of one step. NaN and infinities are written as strings.
struct Row {
  Index step = 0;
  std::vector<std::pair<std::string, double>> values;

  void set(std::string name, double value) { values.emplace_back(std::move(name), value); }
  /// Null if absent.
  double const* find(std::string_view name) const;
};

/// One line of JSON without its line end; reals read back exactly.
std::string to_json(Row const& row);
/// Parses to_json()'s output; what is no number becomes NaN. Throws FileError "FILE:LINE: …" for what is not a JSON object with a step.
Row parse_row(std::string_view line, std::string const& location);
/// A number as JSON: NaN, infinity and −infinity as the strings "NaN", "Infinity", "-Infinity".
nlohmann::ordered_json number(double value);
/// Parses number()'s output; NaN for anything else.
double number_of(nlohmann::ordered_json const& value);

}  // namespace heed
