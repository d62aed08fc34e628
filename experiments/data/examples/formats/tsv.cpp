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

}  // namespace
}  // namespace heed
