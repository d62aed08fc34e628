#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// How the rows of a file are written.
struct TableFormat {
  /// tsv: fields between tabs, quotes are literal; csv: RFC 4180; jsonl: an object a line, whose lists and objects have fields "choices.0",
  /// "answer.text"; blank: fields between blanks, the last of which is the rest of the line.
  std::string kind = "tsv";
  bool header = false;               ///< the first line names the columns
  std::vector<std::string> columns;  ///< their names; empty: those of the header or of the first object
  std::string encoding = "utf-8";    ///< or latin1
};

/// Rows of text with as many fields as there are columns.
struct Table {
  struct TableRow {
    std::vector<std::string> fields;
    std::size_t line;  ///< of the file that it begins in, from 1
  };
  std::string path;
  std::vector<std::string> columns;
  std::vector<TableRow> rows;

  /// Throws FileError "PATH:LINE: message".
  [[noreturn]] void refuse(TableRow const& row, std::string const& message) const;
};

/// Reads the content of the file `path`. A byte-order mark is no text, and lines may end in CR LF. Throws FileError naming file and line
/// for bytes that are not of the encoding, an empty line, a row with fewer or more fields than there are columns, quotes that CSV does not
/// have, what is no JSON object, columns of one name, a header where none is said to be, and a file without rows.
Table read_table(std::string_view content, std::string const& path, TableFormat const& format);

/// A text with the names of columns in braces, "{premise} Therefore: {hypothesis}"; "{{" and "}}" stand for braces.
class TextTemplate {
 public:
  /// Throws Error that begins with `key` for a brace that is never closed or opened, and for a name that is no column of `origin`.
  TextTemplate(std::string const& written, std::string const& key, std::vector<std::string> const& columns, std::string const& origin);

  /// The text with a row's fields.
  std::string of(std::vector<std::string> const& fields) const;

 private:
  /// Text, and the column that follows it.
  struct TemplatePiece {
    std::string text;
    std::size_t column;
  };
  std::vector<TemplatePiece> pieces_;
  std::string end_;
};

}  // namespace heed
