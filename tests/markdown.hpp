#pragma once

#include "tests/test.hpp"

namespace heed::test {

/// Cells of a Markdown table's line; a bar behind a backslash is part of its cell.
inline std::size_t markdown_cells(std::string const& line) {
  std::size_t bars = 0;
  for (std::size_t i = 0; i < line.size(); ++i)
    if (line[i] == '|' && (i == 0 || line[i - 1] != '\\')) ++bars;
  return bars - 1;
}

/// Checks that every row of every table has as many cells as its head, and that a rule follows the head; gives how many tables there are.
inline std::size_t check_markdown_tables(std::string const& text) {
  std::size_t tables = 0, cells = 0, row = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line); ++row) {
    if (!line.starts_with("|")) {
      row = static_cast<std::size_t>(-1);  // the next line may be a head
      continue;
    }
    CAPTURE(line);
    CHECK(line.find_last_not_of(' ') == line.rfind('|'));
    if (row == 0) {
      ++tables;
      cells = markdown_cells(line);
    }
    CHECK(markdown_cells(line) == cells);
    if (row == 1) CHECK(line.find_first_not_of("|-: ") == std::string::npos);
  }
  return tables;
}

}  // namespace heed::test
