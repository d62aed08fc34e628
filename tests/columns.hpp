#pragma once

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace heed::test {

/// The columns of a table of comma-separated values, without quoted fields, whose names are wanted.
inline std::string columns(std::string const& csv, std::function<bool(std::string const& name)> const& wanted) {
  std::istringstream lines(csv);
  std::vector<bool> kept;
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line + ",");
    std::size_t i = 0;
    for (std::string field; std::getline(fields, field, ','); ++i) {
      if (result.find('\n') == result.npos) kept.push_back(wanted(field));
      if (kept.at(i)) result += field + ",";
    }
    CHECK(i == kept.size());
    result += '\n';
  }
  return result;
}

/// The same without what may differ between equal runs.
inline std::string equal_columns(std::string const& csv) {
  return columns(csv, [](std::string const& name) { return !name.starts_with("time.") && !name.starts_with("memory."); });
}

}  // namespace heed::test
