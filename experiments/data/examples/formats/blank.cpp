#include <algorithm>

#include "experiments/data/examples/files.hpp"

namespace heed {
namespace {

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
