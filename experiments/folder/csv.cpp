#include "experiments/folder/csv.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

#include <fmt/ranges.h>

#include "experiments/data/examples/files.hpp"
#include "experiments/metric/statistics.hpp"

namespace heed {

std::string csv_field(std::string const& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (char const c : text) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + '"';
}

std::string csv_line(std::vector<std::string> const& fields) { return fmt::format("{}\n", fmt::join(mapped(fields, csv_field), ",")); }

std::string csv_text(CsvRows const& rows) {
  std::string text;
  for (auto const& row : rows) text += csv_line(row);
  return text;
}

CsvRows parse_csv(std::string_view text) { return mapped(csv_rows(text), &Table::TableRow::fields); }

std::string csv_number(std::optional<double> value) {
  if (!value) return "";
  return std::isnan(*value) ? "NaN" : fmt::format("{}", *value);
}

std::string csv_of(std::vector<Row> const& rows) {
  std::vector<std::string> head{"step"};
  std::map<std::string, std::size_t> columns;
  for (Row const& row : rows)
    for (auto const& [name, value] : row.values)
      if (columns.emplace(name, head.size()).second) head.push_back(name);
  std::string text = csv_line(head);
  for (Row const& row : rows) {
    std::vector<std::string> fields(head.size());
    fields[0] = std::to_string(row.step);
    for (auto const& [name, value] : row.values) fields[columns.at(name)] = csv_number(value);
    text += csv_line(fields);
  }
  return text;
}

std::string const& CsvLine::operator[](std::string_view column) const {
  auto const found = static_cast<std::size_t>(std::ranges::find(head_, column) - head_.begin());
  if (fields_.size() != head_.size() || found == head_.size())
    throw FileError(fmt::format("{}: has {} fields, and needs those of the header, with '{}'", location_, fields_.size(), column));
  return fields_[found];
}

CsvLines csv_lines(CsvRows const& csv, std::filesystem::path const& path) {
  CsvLines lines;
  for (std::size_t i = 1; i < csv.size(); ++i) lines.emplace_back(csv, i, path);
  return lines;
}

CsvLines lines_with(CsvLines const& lines, std::vector<std::pair<std::string, std::string>> const& values) {
  CsvLines found;
  for (auto const& line : lines)
    if (std::ranges::all_of(values, [&](auto const& each) { return line[each.first] == each.second; })) found.push_back(line);
  return found;
}

std::vector<double> numbers_of(CsvLines const& lines, std::string_view column) {
  return mapped(lines, [&](CsvLine const& line) { return line.number(column); });
}

std::pair<double, double> trend_over(CsvLines const& lines, std::string_view column, bool powers) {
  return trend_of(numbers_of(lines, column), numbers_of(lines, "mean"), numbers_of(lines, "standard_error"), powers);
}

NameOf by(std::string column, std::string text) {
  return [=](CsvLine const& line) { return fmt::format(fmt::runtime(text), line[column]); };
}

std::vector<LineGroup> grouped(CsvLines const& lines, NameOf const& name_of) {
  std::vector<LineGroup> groups;
  for (auto const& line : lines) {
    auto const name = name_of(line);
    if (name.empty()) continue;
    auto group = std::ranges::find(groups, name, &LineGroup::name);
    if (group == groups.end()) group = groups.insert(group, {name, {}});
    group->lines.push_back(line);
  }
  return groups;
}

}  // namespace heed
