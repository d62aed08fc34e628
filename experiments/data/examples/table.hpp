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

/// The lines, without what ends them; that of the last may be missing. Throws FileError for an empty one.
std::vector<std::string_view> lines_of(std::string_view text, std::string const& path);

/// The rows of a table's text, the first of which names the columns if there is a header. A table without headers takes the columns that
/// `table` has, or gives it all that its rows have.
using RowsOf = std::vector<Table::TableRow> (*)(std::string_view text, Table& table, bool header);

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
