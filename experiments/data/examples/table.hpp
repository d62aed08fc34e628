#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// File format of a table.
struct TableFormat {
  /// tsv: fields separated by tabs, quotes are literal; csv: RFC 4180; jsonl: one object per line, nested values as fields "choices.0",
  /// "answer.text"; blank: fields separated by blanks, the last field being the rest of the line.
  std::string kind = "tsv";
  bool header = false;               ///< the first line names the columns
  std::vector<std::string> columns;  ///< column names; empty: those of the header or of the first object
  std::string encoding = "utf-8";    ///< or latin1
};

/// Rows of text with one field per column.
struct Table {
  struct TableRow {
    std::vector<std::string> fields;
    std::size_t line;               ///< line of the file in which it begins, from 1
    std::vector<bool> absent = {};  ///< per column: an object's field that is not there; empty: all are
  };
  std::string path;
  std::vector<std::string> columns;
  std::vector<TableRow> rows;
  std::string remark = {};  ///< on a header that names the columns otherwise; "": none

  /// Throws FileError "PATH:LINE: message".
  [[noreturn]] void refuse(TableRow const& row, std::string const& message) const;
};

/// Parses the content of the file `path`. A byte-order mark is skipped, and lines may end in CR LF. Throws FileError naming file and line
/// for bytes that are not of the encoding, an empty line, a row with more or fewer fields than columns, invalid CSV quoting or JSON,
/// repeated column names, a header that was not announced or has the columns in another order, and a file without rows. Objects may lack
/// fields; numbers are the text that is written.
Table read_table(std::string_view content, std::string const& path, TableFormat const& format);

/// A text with column names in braces, "{premise} Therefore: {hypothesis}"; "{{" and "}}" are literal braces.
class TextTemplate {
 public:
  /// Throws Error that begins with `key` for an unmatched brace and for a name that is not a column of `origin`.
  TextTemplate(std::string const& written, std::string const& key, std::vector<std::string> const& columns, std::string const& origin);

  /// The text with a row's values. Throws FileError for a field that the row lacks.
  std::string of(Table const& table, Table::TableRow const& row) const;

 private:
  /// A piece of literal text and the column that follows it.
  struct TemplatePiece {
    std::string text;
    std::size_t column;
  };
  std::vector<TemplatePiece> pieces_;
  std::string end_;
};

}  // namespace heed
