#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/metric/row.hpp"

namespace heed {

/// A field of comma-separated values (RFC 4180): in quotes if it holds a comma, a quote or a line end.
std::string csv_field(std::string const& text);
/// A line of fields, with its line end.
std::string csv_line(std::vector<std::string> const& fields);
/// The lines of a text that csv_line() wrote, or others of that kind.
std::vector<std::vector<std::string>> parse_csv(std::string_view text);

/// A number in the spelling of pandas and R, which reads back exactly: NaN, inf and -inf too; nothing is "".
std::string csv_number(std::optional<double> value);
/// Rows of metrics as a table: a column per metric in order of appearance, a line per step. What a step lacks is empty.
std::string csv_of(std::vector<Row> const& rows);

}  // namespace heed
