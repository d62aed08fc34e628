#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/data/examples/files.hpp"
#include "nn/files/json.hpp"

namespace heed {
namespace {

using Json = nlohmann::ordered_json;
using NamedFields = std::vector<std::pair<std::string, std::string>>;

/// JSON with its numbers as texts (1.0 is not 1, and not every number beyond 2⁶⁴ is a double), or only those that are none in JSON, but
/// that Python writes.
std::string with_quoted_numbers(std::string_view json, bool all) {
  std::string text;
  bool inside = false;  // a text
  for (std::size_t i = 0; i < json.size();) {
    std::size_t size = inside && json[i] == '\\' ? 2 : 1;
    bool const number = !inside && (json[i] == '-' || json[i] == 'N' || json[i] == 'I' || (json[i] >= '0' && json[i] <= '9'));
    if (number) size = std::min(json.find_first_not_of("+-.0123456789EeNaInfity", i), json.size()) - i;
    if (json[i] == '"') inside = !inside;
    auto const part = json.substr(i, size);
    bool const quoted = number && (all || part == "NaN" || part == "Infinity" || part == "-Infinity");
    text += fmt::format("{0}{1}{0}", quoted ? "\"" : "", part);
    i += size;
  }
  return text;
}

/// The scalars of a value as text, by their dotted names.
void flatten(Json const& value, std::string const& name, NamedFields& fields) {
  for (auto const& [key, item] : value.items()) {
    auto const full = name.empty() ? key : name + "." + key;
    if (item.is_structured())
      flatten(item, full, fields);
    else
      fields.emplace_back(full, item.is_string() ? item.get<std::string>() : item.is_null() ? "" : item.dump());
  }
}

NamedFields fields_of_object(std::string_view line, std::string const& location) {
  auto const what = location + ": the line";
  auto const json = with_quoted_numbers(line, false);
  if (!parse_json<Json>(json, what).is_object()) throw FileError(what + " is no JSON object, {\"column\": …}");
  NamedFields fields;
  flatten(parse_json<Json>(with_quoted_numbers(json, true), what), "", fields);
  return fields;
}

/// Columns are those that are declared, or all that objects have.
std::vector<Table::TableRow> json_rows(std::string_view text, Table& table, bool) {
  bool const declared = !table.columns.empty();
  std::map<std::string, std::size_t> numbers;
  for (auto const& column : table.columns) numbers.emplace(column, numbers.size());
  std::vector<NamedFields> objects;
  auto const lines = lines_of(text, table.path);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    objects.push_back(fields_of_object(lines[i], fmt::format("{}:{}", table.path, i + 1)));
    for (auto const& [name, value] : objects.back())
      if (!declared && numbers.emplace(name, numbers.size()).second) table.columns.push_back(name);
  }
  std::vector<Table::TableRow> rows;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    Table::TableRow& row = rows.emplace_back(
        Table::TableRow{std::vector<std::string>(table.columns.size()), i + 1, std::vector<bool>(table.columns.size(), true)});
    for (auto& [name, value] : objects[i]) {
      auto const column = numbers.find(name);
      if (column == numbers.end()) continue;
      if (!row.absent[column->second]) table.refuse(row, fmt::format("has two fields {}", shown(name)));
      row.fields[column->second] = std::move(value);
      row.absent[column->second] = false;
    }
  }
  return rows;
}

/// One object per line, nested values as fields "choices.0", "answer.text".
Declared<ExampleFormat> const jsonl_format{
    table_format({.order = 3,
                  .name = "jsonl",
                  .ending = ".jsonl",
                  .sample = "{\"text\": \"good\", \"label\": 1}\n{\"text\": \"bad\", \"label\": 0}\n",
                  .without = {"header"},
                  .why = "JSON lines have none"},
                 json_rows)};

}  // namespace
}  // namespace heed
