// Tables of a row on each line: fields between tabs, and fields between blanks.

#include <algorithm>

#include "experiments/data/examples/files.hpp"

namespace heed {
namespace {

std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    auto const end = std::min(line.find('\t', begin), line.size());
    fields.emplace_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return fields;
}

std::vector<Table::TableRow> tab_rows(std::string_view text, Table& table, bool) {
  std::vector<Table::TableRow> rows;
  for (auto const line : lines_of(text, table.path)) rows.push_back({fields_of(line), rows.size() + 1});
  return rows;
}

Declared<ExampleFormat> const tsv_format{table_format(
    {.order = 1, .name = "tsv", .ending = ".tsv", .help = "quotes are literal", .sample = "text\tlabel\ngood\t1\nbad\t0\n"}, tab_rows)};

/// At most so many fields, the last of which is the rest of the line.
std::vector<std::string> split_blanks(std::string_view line, std::size_t most) {
  constexpr std::string_view blank = " \t";
  std::vector<std::string> fields;
  for (std::size_t begin = line.find_first_not_of(blank); begin < line.size();) {
    auto const end = fields.size() + 1 == most ? line.find_last_not_of(blank) + 1 : std::min(line.find_first_of(blank, begin), line.size());
    fields.emplace_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(blank, end);
  }
  return fields;
}

std::vector<Table::TableRow> blank_rows(std::string_view text, Table& table, bool header) {
  std::vector<Table::TableRow> rows;
  auto const lines = lines_of(text, table.path);
  auto columns = table.columns.size();
  if (header && !lines.empty()) columns = split_blanks(lines.front(), lines.front().size()).size();
  for (auto const line : lines) rows.push_back({split_blanks(line, columns), rows.size() + 1});
  return rows;
}

Declared<ExampleFormat> const blank_format{table_format({.order = 4,
                                                         .name = "blank",
                                                         .help = "fields separated by blanks, the last is the rest of the line",
                                                         .sample = "label text\n1 so good\n0 too bad\n",
                                                         .contradiction = [](FileExamples const& of) -> std::optional<std::string> {
                                                           if (of.columns.size() != 1) return std::nullopt;
                                                           return "columns: beside one there is no label; the last is the rest of the line";
                                                         }},
                                                        blank_rows)};

}  // namespace
}  // namespace heed
