#include "experiments/data/examples/files.hpp"

namespace heed {

std::vector<Table::TableRow> csv_rows(std::string_view text, std::function<void(std::size_t line, char const* why)> const& refuse) {
  std::vector<Table::TableRow> rows;
  std::size_t line = 1, opened = 0;
  bool fresh = true, quoted = false, closed = false;  // the next character begins a row; is between quotes; comes after them
  auto const fault = [&](std::size_t where, char const* why) {
    if (refuse) refuse(where, why);
  };
  auto const end_row = [&] {
    if (rows.back().fields == std::vector<std::string>{""}) fault(rows.back().line, "the line is empty");
    fresh = true;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (fresh) rows.push_back({{""}, line});
    fresh = false;
    auto& fields = rows.back().fields;
    char const c = text[i], next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (c == '\n') ++line;
    if (quoted && (c != '"' || next == '"')) {
      fields.back() += c;
      if (c == '"') ++i;
    } else if (quoted) {
      quoted = false, closed = true;
    } else if (c == '"') {
      if (!fields.back().empty()) fault(line, "a quote inside a field that does not begin with one; quote the field and double it");
      quoted = true, opened = line;
    } else if (c == ',') {
      fields.emplace_back();
      closed = false;
    } else if (c == '\n') {
      end_row();
      closed = false;
    } else if (c != '\r' || (refuse && next != '\n')) {
      if (closed) fault(line, "text behind the quote that ends a field; a quote inside is doubled");
      fields.back() += c;
    }
  }
  if (quoted) fault(opened, "the quote that begins a field here is never closed");
  if (!fresh) end_row();
  return rows;
}

namespace {

/// RFC 4180.
Declared<ExampleFormat> const csv_format{
    table_format({.order = 2, .name = "csv", .ending = ".csv", .sample = "text,label\n\"good, yes\",1\nbad,0\n"},
                 [](std::string_view text, Table& table, bool) {
                   return csv_rows(text, [&](std::size_t line, char const* why) { refuse_line(table.path, line, why); });
                 })};

}  // namespace
}  // namespace heed
