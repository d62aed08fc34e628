#include "experiments/metric/row.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "nn/files/json.hpp"

namespace heed {

nlohmann::ordered_json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

double number_of(nlohmann::ordered_json const& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nan("");
}

double const* Row::find(std::string_view name) const {
  auto const found = std::ranges::find(values, name, [](auto const& each) -> std::string_view { return each.first; });
  return found == values.end() ? nullptr : &found->second;
}

std::string to_json(Row const& row) {
  nlohmann::ordered_json object{{"step", row.step}};
  for (auto const& [name, value] : row.values) object[name] = number(value);
  return json_text(object);
}

Row parse_row(std::string_view line, std::string const& location) {
  auto const object = parse_json<nlohmann::ordered_json>(line, location + ": the row of metrics");
  auto const step = object.is_object() ? object.find("step") : object.end();
  if (step == object.end() || !step->is_number_unsigned() || step->get<std::uint64_t>() > std::uint64_t{INT64_MAX})
    throw FileError(fmt::format("{}: is not a row of metrics (an object whose step is a whole number)", location));
  Row row{step->get<Index>(), {}};
  for (auto const& [name, value] : object.items())
    if (name != "step") row.set(name, number_of(value));
  return row;
}

}  // namespace heed
