#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/data/examples/table.hpp"
#include "nn/files/json.hpp"

namespace heed {
namespace {

using Json = nlohmann::ordered_json;
using NamedFields = std::vector<std::pair<std::string, std::string>>;

/// Valid JSON with its numbers as texts: 1.0 is not 1, and not every number beyond 2⁶⁴ is a double.
std::string with_quoted_numbers(std::string_view json) {
  std::string text;
  bool inside = false;  // a text
  for (std::size_t i = 0; i < json.size();) {
    std::size_t size = inside && json[i] == '\\' ? 2 : 1;
    bool const number = !inside && (json[i] == '-' || (json[i] >= '0' && json[i] <= '9'));
    if (number) size = std::min(json.find_first_not_of("+-.0123456789Ee", i), json.size()) - i;
    if (json[i] == '"') inside = !inside;
    text += fmt::format("{0}{1}{0}", number ? "\"" : "", json.substr(i, size));
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
  if (!parse_json<Json>(line, what).is_object()) throw FileError(what + " is no JSON object, {\"column\": …}");
  NamedFields fields;
  flatten(parse_json<Json>(with_quoted_numbers(line), what), "", fields);
  return fields;
}

/// An object's text, and the line in which it begins.
struct WrittenObject {
  std::string_view text;
  std::size_t line;
};

/// The objects of a list. Throws FileError for anything else between its brackets.
std::vector<WrittenObject> objects_of_list(std::string_view text, std::string const& path) {
  std::vector<WrittenObject> objects;
  std::size_t line = 1, depth = 0, begin = 0, begin_line = 1;
  bool inside = false;  // a text
  for (std::size_t i = 0; i < text.size(); ++i) {
    char const c = text[i];
    if (inside && c == '\\') {
      ++i;
    } else if (c == '"' && depth > 1) {
      inside = !inside;
    } else if (c == '\n') {
      ++line;
    } else if (!inside && (depth == 0 ? c == '[' : c == '{' || (depth > 1 && c == '['))) {
      if (++depth == 2) begin = i, begin_line = line;
    } else if (!inside && depth > 0 && (c == '}' || c == ']')) {
      if (--depth == 1) objects.push_back({text.substr(begin, i + 1 - begin), begin_line});
    } else if (depth < 2 && c != ' ' && c != '\t' && c != '\r' && (c != ',' || depth == 0)) {
      refuse_line(path, line, "is no list of JSON objects, [{\"column\": …}, …]");
    }
  }
  if (depth > 0) refuse_line(path, begin_line, "the list, or an object in it that begins here, is never closed");
  return objects;
}

/// Columns are those that are declared, or all that objects have.
std::vector<Table::TableRow> rows_of_objects(std::vector<WrittenObject> const& written, Table& table) {
  bool const declared = !table.columns.empty();
  std::map<std::string, std::size_t> numbers;
  for (auto const& column : table.columns) numbers.emplace(column, numbers.size());
  std::vector<NamedFields> objects;
  for (auto const& [text, line] : written) {
    objects.push_back(fields_of_object(text, fmt::format("{}:{}", table.path, line)));
    for (auto const& [name, value] : objects.back())
      if (!declared && numbers.emplace(name, numbers.size()).second) table.columns.push_back(name);
  }
  std::vector<Table::TableRow> rows;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    Table::TableRow& row = rows.emplace_back(
        Table::TableRow{std::vector<std::string>(table.columns.size()), written[i].line, std::vector<bool>(table.columns.size(), true)});
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

}  // namespace

std::vector<Table::TableRow> json_rows(std::string_view text, Table& table, bool) {
  std::vector<WrittenObject> objects;
  for (auto const line : lines_of(text, table.path)) objects.push_back({line, objects.size() + 1});
  return rows_of_objects(objects, table);
}

std::vector<Table::TableRow> json_list_rows(std::string_view text, Table& table, bool) {
  auto rows = rows_of_objects(objects_of_list(text, table.path), table);
  parse_json<Json>(text, table.path + ": the table");  // commas
  return rows;
}

namespace {

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
