#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/metric/row.hpp"
#include "nn/files/number.hpp"

namespace heed {

/// A field of comma-separated values (RFC 4180): in quotes if it holds a comma, a quote or a line end.
std::string csv_field(std::string const& text);
/// A line of fields, with its line end.
std::string csv_line(std::vector<std::string> const& fields);
using CsvRows = std::vector<std::vector<std::string>>;
std::string csv_text(CsvRows const& rows);
/// The lines of a text that csv_line() wrote, or others of that kind.
CsvRows parse_csv(std::string_view text);

/// A line of a table with a header, its fields by the names of their columns.
class CsvLine {
 public:
  CsvLine(CsvRows const& csv, std::size_t line, std::filesystem::path const& path) : head_(csv.front()), fields_(csv[line]) {
    location_ = fmt::format("{}: line {}", path.string(), line + 1);
  }
  /// Throws FileError for a line that has another number of fields than the header.
  std::string const& operator[](std::string_view column) const;
  /// Throws FileError for a field that is no number.
  template <class Number = double>
  Number number(std::string_view column) const {
    if (auto const found = parsed_number<Number>((*this)[column])) return *found;
    throw FileError(fmt::format("{}: its {} is no number: '{}'", location_, column, (*this)[column]));
  }
  std::string const& location() const { return location_; }

 private:
  CsvRows::value_type const &head_, &fields_;
  std::string location_;
};
/// The lines after the header.
using CsvLines = std::vector<CsvLine>;
CsvLines csv_lines(CsvRows const& csv, std::filesystem::path const& path);
CsvLines csv_lines(CsvRows&& csv, std::filesystem::path const& path) = delete;  // lines refer to their table

/// Those with these values in these columns.
CsvLines lines_with(CsvLines const& lines, std::vector<std::pair<std::string, std::string>> const& values);
/// A column.
std::vector<double> numbers_of(CsvLines const& lines, std::string_view column);
/// The slope of means over a column or (`powers`) their exponent, and its standard error from theirs. NaN where one is not finite.
/// Throws Error for fewer than two different values.
std::pair<double, double> trend_over(CsvLines const& lines, std::string_view column, bool powers);

/// Lines that belong together: a curve, or a row of a table.
struct LineGroup {
  std::string name;
  CsvLines lines;
};
/// What groups lines: the value of a column, in a text such as "step {}".
using NameOf = std::function<std::string(CsvLine const&)>;
NameOf by(std::string column, std::string text = "{}");
/// Groups in the order in which their names appear. Lines without a name are left out.
std::vector<LineGroup> grouped(CsvLines const& lines, NameOf const& name_of);

/// A number in the spelling of pandas and R, which reads back exactly: NaN, inf and -inf too; nothing is "".
std::string csv_number(std::optional<double> value);
/// Rows of metrics as a table: a column per metric in order of appearance, a line per step. What a step lacks is empty.
std::string csv_of(std::vector<Row> const& rows);

}  // namespace heed
