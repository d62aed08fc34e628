#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/data/examples/files.hpp"

namespace heed {

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

/// Throws FileError "PATH:LINE: message".
[[noreturn]] void refuse_line(std::string const& path, std::size_t line, std::string const& message);

/// The lines, without what ends them; that of the last may be missing. Throws FileError for an empty one.
std::vector<std::string_view> lines_of(std::string_view text, std::string const& path);

/// The rows of a table's text, the first of which names the columns if there is a header. A table without headers takes the columns that
/// `table` has, or gives it all that its rows have.
using RowsOf = std::vector<Table::TableRow> (*)(std::string_view text, Table& table, bool header);

std::vector<Table::TableRow> csv_rows(std::string_view text, Table& table, bool header);        ///< RFC 4180
std::vector<Table::TableRow> tab_rows(std::string_view text, Table& table, bool header);        ///< between tabs; quotes are literal
std::vector<Table::TableRow> json_rows(std::string_view text, Table& table, bool header);       ///< an object per line
std::vector<Table::TableRow> json_list_rows(std::string_view text, Table& table, bool header);  ///< one list of objects

/// Throws FileError at a byte that is no text: NUL, or not UTF-8, which is said with advice ("save it as UTF-8").
void check_utf8(std::string_view text, std::string const& path, std::string const& advice);

/// Who names the columns of a table.
enum class ColumnNames { header, others, rows };

/// The table of a text, with the columns that are asked for, if any. Throws FileError for a row with more or fewer fields than columns,
/// repeated column names, a header that was not announced or has the columns in another order, and a text without rows.
Table parse_table(std::string_view text, std::string const& path, RowsOf rows, ColumnNames named_by, std::vector<std::string> columns = {});

/// A format whose files are tables: rows become examples by the templates of the keys (`text: "{premise} Therefore: {hypothesis}"`; "{{"
/// and
/// "}}" are literal braces).
///
/// A byte-order mark is skipped, and lines may end in CR LF. Reading throws FileError naming file and line for bytes that are not of the
/// encoding, an empty line, a row with more or fewer fields than columns, repeated column names, a header that was not announced or has the
/// columns in another order, a file without rows, a field that a row lacks, and an empty text; Error that begins with the key for an
/// unmatched brace and for a name that is not a column.
ExampleFormat table_format(ExampleFormat about, RowsOf rows);

}  // namespace heed
