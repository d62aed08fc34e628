#include "experiments/data/examples/table.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/data/examples/example.hpp"
#include "nn/files/json.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

[[noreturn]] void refuse_line(std::string const& path, std::size_t line, std::string const& message) {
  throw FileError(fmt::format("{}:{}: {}", path, line, message));
}

/// Latin-1 as UTF-8: a byte is a code point.
std::string from_latin1(std::string_view text) {
  std::string result;
  for (char const c : text) result += to_utf8(static_cast<unsigned char>(c));
  return result;
}

/// Throws FileError at a byte that is no text: NUL, or not UTF-8.
void check_utf8(std::string_view text, std::string const& path) {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i < text.size(); ++column) {
    auto const begin = i;
    if (!decode_utf8(text, i))
      throw FileError(fmt::format("{}:{}:{}: byte 0x{:02x} is not UTF-8; of a file in Latin-1 say data.encoding: latin1", path, line,
                                  column, static_cast<unsigned char>(text[begin])));
    if (text[begin] == '\0')
      throw FileError(fmt::format("{}:{}:{}: a NUL byte, which no text has; a file in UTF-16 must be saved as UTF-8", path, line, column));
    if (text[begin] == '\n') ++line, column = 0;
  }
}

std::vector<std::string> split(std::string_view line, char separator) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    auto const end = std::min(line.find(separator, begin), line.size());
    fields.emplace_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return fields;
}

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

/// The rows of a CSV file, from one to the next.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string const& path) : text_(text), path_(path) {}

  bool done() const { return at_ >= text_.size(); }
  Table::TableRow next() {
    Table::TableRow row{{}, line_};
    do row.fields.push_back(field());
    while (at_ < text_.size() && text_[at_] == ',' && ++at_);
    if (text_.substr(at_, 2) == "\r\n") ++at_;
    ++at_, ++line_;
    return row;
  }

 private:
  bool ends_row() const { return at_ >= text_.size() || text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n"; }
  std::string field() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted_field();
    std::string value;
    for (; !ends_row() && text_[at_] != ','; ++at_) {
      if (text_[at_] == '"')
        refuse_line(path_, line_, "a quote inside a field that does not begin with one; quote the field and double it");
      value += text_[at_];
    }
    return value;
  }
  std::string quoted_field() {
    auto const first_line = line_;
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"')
        value += text_[at_];
      else if (text_.substr(at_ + 1, 1) == "\"")
        value += text_[at_++];
      else
        break;
    }
    if (at_ >= text_.size()) refuse_line(path_, first_line, "the quote that begins a field here is never closed");
    ++at_;
    if (!ends_row() && text_[at_] != ',') refuse_line(path_, line_, "text behind the quote that ends a field; a quote inside is doubled");
    return value;
  }

  std::string_view text_;
  std::string const& path_;
  std::size_t at_ = 0, line_ = 1;
};

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

NamedFields fields_of_object(std::string_view line, std::string const& place) {
  auto const what = place + ": the line";
  if (!parse_json<Json>(line, what).is_object()) throw FileError(what + " is no JSON object, {\"column\": …}");
  NamedFields fields;
  flatten(parse_json<Json>(with_quoted_numbers(line), what), "", fields);
  return fields;
}

/// The lines, without what ends them; that of the last may be missing.
std::vector<std::string_view> lines_of(std::string_view text, std::string const& path) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    auto const end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    if (lines.back().ends_with('\r')) lines.back().remove_suffix(1);
    if (lines.back().find_first_not_of(" \t") == lines.back().npos) refuse_line(path, lines.size(), "the line is empty");
    begin = end + 1;
  }
  return lines;
}

/// Columns are those that are declared, or all that objects have.
std::vector<Table::TableRow> json_rows(std::string_view text, Table& table) {
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

std::vector<Table::TableRow> plain_rows(std::string_view text, Table const& table, TableFormat const& format) {
  std::vector<Table::TableRow> rows;
  if (format.kind == "csv") {
    for (CsvReader reader(text, table.path); !reader.done();) {
      rows.push_back(reader.next());
      if (rows.back().fields == std::vector<std::string>{""}) table.refuse(rows.back(), "the line is empty");
    }
    return rows;
  }
  auto const lines = lines_of(text, table.path);
  auto columns = format.columns.size();
  if (format.kind == "blank" && format.header && !lines.empty()) columns = split_blanks(lines.front(), lines.front().size()).size();
  for (std::size_t i = 0; i < lines.size(); ++i)
    rows.push_back({format.kind == "tsv" ? split(lines[i], '\t') : split_blanks(lines[i], columns), i + 1});
  return rows;
}

std::string counted(std::size_t columns) { return fmt::format("{} column{}", columns, columns == 1 ? "" : "s"); }

/// Takes the header away and gives the columns their names.
void name_columns(Table& table, TableFormat const& format) {
  if (table.rows.empty()) return;
  auto const& first = table.rows.front();
  auto const& columns = table.columns;
  std::vector<std::string> header, asked;  // but for blanks and case
  std::ranges::transform(first.fields, std::back_inserter(header), folded);
  std::ranges::transform(columns, std::back_inserter(asked), folded);
  bool const names_them = columns.size() > 1 && std::ranges::is_permutation(header, asked);
  if (!format.header) {
    if (names_them) table.refuse(first, "the line names the columns; say data.header: true, or it is taken for an example");
    return;
  }
  if (columns.empty()) table.columns = first.fields;
  if (columns.size() != first.fields.size())
    table.refuse(first, fmt::format("the header has {}, and data.columns names {}", counted(first.fields.size()), columns.size()));
  for (std::size_t i = 0; i < asked.size(); ++i)
    if (auto const found = std::ranges::find(asked, header[i]); found != asked.end() && asked[i] != header[i])
      table.refuse(first, fmt::format("the header calls column {} {}, which data.columns calls column {}", i + 1, shown(first.fields[i]),
                                      found - asked.begin() + 1));
  if (columns != first.fields)
    table.remark = fmt::format("{}: the header names the columns {}; data.columns calls them {}", table.path, fmt::join(first.fields, ", "),
                               fmt::join(columns, ", "));
  table.rows.erase(table.rows.begin());
}

void check(Table const& table) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    auto const& name = table.columns[i];
    if (name.empty()) continue;  // pandas' index
    if (std::find(table.columns.begin(), table.columns.begin() + static_cast<std::ptrdiff_t>(i), name) !=
        table.columns.begin() + static_cast<std::ptrdiff_t>(i))
      throw FileError(fmt::format("{}: two columns are called {}", table.path, shown(name)));
  }
  if (table.rows.empty()) throw FileError(table.path + ": there are no rows");
  for (auto const& row : table.rows)
    if (row.fields.size() != table.columns.size())
      table.refuse(row, fmt::format("has {}, and there are {}: {}", counted(row.fields.size()), table.columns.size(),
                                    fmt::join(table.columns, ", ")));
}

}  // namespace

void Table::refuse(TableRow const& row, std::string const& message) const { refuse_line(path, row.line, message); }

Table read_table(std::string_view content, std::string const& path, TableFormat const& format) {
  std::string converted;
  if (format.encoding == "latin1") content = converted = from_latin1(content);
  check_utf8(content = without_byte_order_mark(content), path);
  Table table{path, format.columns, {}};
  table.rows = format.kind == "jsonl" ? json_rows(content, table) : plain_rows(content, table, format);
  if (format.kind != "jsonl") name_columns(table, format);
  check(table);
  return table;
}

TextTemplate::TextTemplate(std::string const& written, std::string const& key, std::vector<std::string> const& columns,
                           std::string const& origin) {
  for (std::size_t at = 0; at < written.size(); ++at) {
    bool const doubled = written.substr(at, 2) == "{{" || written.substr(at, 2) == "}}";
    if (doubled) ++at;
    if (doubled || (written[at] != '{' && written[at] != '}')) {
      end_ += written[at];
      continue;
    }
    auto const close = written.find('}', at);
    if (written[at] == '}' || close == written.npos)
      throw Error(
          fmt::format("{}: {} has a brace without its other; columns are written {{name}}, a brace itself twice", key, shown(written)));
    auto const name = written.substr(at + 1, close - at - 1);
    auto const column = std::ranges::find(columns, name);
    if (column == columns.end())
      throw Error(fmt::format("{}: there is no column {}{}; {} has {}", key, shown(name), did_you_mean(name, columns), origin,
                              fmt::join(columns, ", ")));
    pieces_.push_back({std::move(end_), static_cast<std::size_t>(column - columns.begin())});
    end_.clear();
    at = close;
  }
}

std::string TextTemplate::of(Table const& table, Table::TableRow const& row) const {
  std::string text;
  for (auto const& [before, column] : pieces_) {
    if (!row.absent.empty() && row.absent[column]) {
      std::vector<std::string> there;
      for (std::size_t i = 0; i < row.absent.size(); ++i)
        if (!row.absent[i]) there.push_back(table.columns[i]);
      auto const& name = table.columns[column];
      table.refuse(row, fmt::format("there is no field {}{}", shown(name), did_you_mean(name, there)));
    }
    text += before + row.fields[column];
  }
  return text + end_;
}

}  // namespace heed
