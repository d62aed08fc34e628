#include "experiments/config/table.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/scalar.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/data/examples/files.hpp"
#include "nn/files/utf8.hpp"

namespace heed {
namespace {

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
      throw FileError(
          fmt::format("{}:{}:{}: byte 0x{:02x} is not UTF-8; save it as UTF-8, or say data.encoding: latin1 of examples in Latin-1", path,
                      line, column, static_cast<unsigned char>(text[begin])));
    if (text[begin] == '\0')
      throw FileError(fmt::format("{}:{}:{}: a NUL byte, which no text has; a file in UTF-16 must be saved as UTF-8", path, line, column));
    if (text[begin] == '\n') ++line, column = 0;
  }
}

/// Takes the header away and gives the columns their names.
void name_columns(Table& table, bool has_header) {
  if (table.rows.empty()) return;
  auto const& first = table.rows.front();
  auto const& columns = table.columns;
  auto const header = mapped(first.fields, folded), asked = mapped(columns, folded);  // but for blanks and case
  bool const names_them = columns.size() > 1 && std::ranges::is_permutation(header, asked);
  if (!has_header) {
    if (names_them) table.refuse(first, "the line names the columns; say data.header: true, or it is taken for an example");
    return;
  }
  if (columns.empty()) table.columns = first.fields;
  if (columns.size() != first.fields.size())
    table.refuse(first, fmt::format("the header has {}, and data.columns names {}", plural(first.fields.size(), "column"), columns.size()));
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
  std::set<std::string> names;
  for (auto const& name : table.columns)  // pandas' index has none
    if (!name.empty() && !names.insert(name).second) refuse_line(table.path, 1, fmt::format("two columns are called {}", shown(name)));
  if (table.rows.empty()) refuse_line(table.path, 1, "there are no rows");
  for (auto const& row : table.rows)
    if (row.fields.size() != table.columns.size())
      table.refuse(row, fmt::format("has {}, and there are {}: {}", plural(row.fields.size(), "column"), table.columns.size(),
                                    fmt::join(table.columns, ", ")));
}

/// A text with column names in braces, "{premise} Therefore: {hypothesis}"; "{{" and "}}" are literal braces.
class TextTemplate {
 public:
  TextTemplate() = default;
  /// Throws Error that begins with `key` for an unmatched brace and for a name that is not a column of the table.
  TextTemplate(std::string const& written, std::string const& key, Table const& table) {
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
      auto const column = std::ranges::find(table.columns, name);
      if (column == table.columns.end())
        throw Error(fmt::format("{}: there is no column {}{}; {} has {}", key, shown(name), did_you_mean(name, table.columns), table.path,
                                fmt::join(table.columns, ", ")));
      pieces_.emplace_back(std::exchange(end_, ""), static_cast<std::size_t>(column - table.columns.begin()));
      at = close;
    }
  }

  bool empty() const { return pieces_.empty() && end_.empty(); }

  /// The text with a row's values. Throws FileError for a field that the row lacks.
  std::string of(Table const& table, Table::TableRow const& row) const {
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

 private:
  std::vector<std::pair<std::string, std::size_t>> pieces_;  ///< literal text, and the column that follows it
  std::string end_;
};

/// The templates that make an example from the fields of a row; those that are not asked for are empty.
struct Templates {
  Templates(FileExamples const& settings, Table const& table) : span(!settings.answer.empty()), labelled(settings.labelled) {
    auto const made = [&](std::string const& written, std::string const& key) { return TextTemplate(written, "data." + key, table); };
    first = made(settings.text, "text");
    second = made(settings.second, "second");
    if (labelled) {
      answer = made(settings.answer, "answer");
      start = made(settings.start, "start");
      if (!span) label = made(settings.label, "label");
    }
    for (auto const& option : settings.options) options.push_back(made(option, "options"));
  }
  bool span, labelled;  ///< an answer is asked for; labels and answers are read
  TextTemplate first, second, label, answer, start;
  std::vector<TextTemplate> options;
};

/// The text that a template makes of a row. Throws FileError if it is empty.
std::string filled(TextTemplate const& text, Table const& table, Table::TableRow const& row, std::string const& what) {
  auto made = text.of(table, row);
  if (made.find_first_not_of(" \t\r\n") == made.npos) table.refuse(row, fmt::format("the {} is empty", what));
  return made;
}

/// The byte of the passage at which the answer of a row begins.
Index start_of(std::string const& answer, std::string const& passage, Templates const& templates, Table const& table,
               Table::TableRow const& row) {
  if (templates.start.empty()) {
    auto const found = passage.find(answer);
    if (found == passage.npos) table.refuse(row, fmt::format("the answer {} does not occur in the passage", shown(answer)));
    return static_cast<Index>(found);
  }
  auto const written = templates.start.of(table, row);
  auto const starts = character_starts(passage);
  auto const character = parse_integer(written);
  if (!character || *character < 0 || *character > std::ssize(starts) - 2)
    table.refuse(row, fmt::format("the answer's start {} is not the number of a character of the passage, 0 … {}", shown(written),
                                  starts.size() - 2));
  auto const begin = at(starts, *character);
  if (passage.compare(begin, answer.size(), answer) != 0)
    table.refuse(row, fmt::format("the answer {} is not at character {} of the passage", shown(answer), *character));
  return static_cast<Index>(begin);
}

SourcedExample example_of(Table const& table, Table::TableRow const& row, Templates const& templates) {
  Example example;
  example.location = fmt::format("{}:{}", table.path, row.line);
  example.first = filled(templates.first, table, row, "text");
  if (!templates.second.empty()) example.second = filled(templates.second, table, row, templates.span ? "passage" : "second text");
  for (auto const& option : templates.options)
    example.options.push_back(filled(option, table, row, fmt::format("option {}", example.options.size())));
  example.span = templates.span;
  if (templates.labelled && !templates.span) example.label = filled(templates.label, table, row, "label");
  if (templates.labelled && templates.span) {
    auto const answer = templates.answer.of(table, row);
    if (!answer.empty()) example.answers.push_back({answer, start_of(answer, example.second, templates, table, row)});
  }
  auto article = example.span ? example.second : example.first;
  auto id = fmt::format("{}\n{}", example.first, example.second);
  return {std::move(example), std::move(article), std::move(id)};
}

/// The examples of a table, but for those that are left out.
std::vector<SourcedExample> examples_of(Table const& table, FileExamples const& keys, std::vector<std::string>& remarks) {
  Templates const templates(keys, table);
  std::vector<SourcedExample> all;
  auto const& left_out = keys.leave_out.label;
  for (auto const& row : table.rows)
    if (left_out.empty() || std::ranges::find(left_out, templates.label.of(table, row)) == left_out.end())
      all.push_back(example_of(table, row, templates));
  if (all.empty()) throw FileError(fmt::format("{}: data.leave_out leaves none of {} rows", table.path, table.rows.size()));
  if (!left_out.empty())
    remarks.push_back(
        fmt::format("{}: {} of {} rows are left out (data.leave_out)", table.path, table.rows.size() - all.size(), table.rows.size()));
  if (!table.remark.empty()) remarks.push_back(table.remark);
  return all;
}

}  // namespace

std::vector<std::string_view> lines_of(std::string_view text, std::string const& path) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    lines.push_back(next_line(text, begin));
    if (lines.back().find_first_not_of(" \t") == lines.back().npos) refuse_line(path, lines.size(), "the line is empty");
  }
  return lines;
}

void Table::refuse(TableRow const& row, std::string const& message) const { refuse_line(path, row.line, message); }

ExampleFormat table_format(ExampleFormat about, RowsOf rows) {
  bool const headed = !about.lacks("header");
  if (headed)
    about.contradiction = [own = about.contradiction](FileExamples const& of) -> std::optional<std::string> {
      if (!of.header && of.columns.empty()) return "columns: name them, or say header: true if the first line does";
      return own ? own(of) : std::nullopt;
    };
  about.table = [=](std::string_view content, std::string const& path, FileExamples const& keys) {
    std::string converted;
    if (keys.encoding == "latin1") content = converted = from_latin1(content);
    check_utf8(content = without_byte_order_mark(content), path);
    Table table{path, keys.columns, {}};
    table.rows = rows(content, table, keys.header);
    if (headed) name_columns(table, keys.header);
    check(table);
    return table;
  };
  about.read = [table = about.table](std::string_view content, std::string const& path, FileExamples const& keys,
                                     std::vector<std::string>& remarks) { return examples_of(table(content, path, keys), keys, remarks); };
  return about;
}

}  // namespace heed
