#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/run/record.hpp"

namespace heed {

/// A field of comma-separated values (RFC 4180): in quotes if it holds a comma, a quote or a line end.
std::string csv_field(std::string const& text);
/// A line of fields, with its line end.
std::string csv_line(std::vector<std::string> const& fields);
/// The lines of a text that csv_line() wrote, or others of that kind.
std::vector<std::vector<std::string>> parse_csv(std::string_view text);

/// metrics.csv of a run: metrics.jsonl as a table, a column a metric in order of appearance, a row a step. What a step lacks is empty; NaN
/// and infinities are NaN, inf and -inf, as pandas and R read them; reals read back exactly. A metric that appears later in a run gets its
/// column then: the file is written anew from metrics.jsonl, whole or not at all. Every other row is appended.
class MetricsTable {
 public:
  /// The table of the rows that metrics.jsonl holds. Throws FileError if they cannot be read, Error if it cannot be written.
  explicit MetricsTable(std::filesystem::path jsonl);
  ~MetricsTable();
  MetricsTable(MetricsTable const&) = delete;
  MetricsTable& operator=(MetricsTable const&) = delete;

  /// Adds a row that metrics.jsonl holds already. Throws Error if the disk is full.
  void write(Row const& row);

 private:
  std::string line(Row const& row) const;
  void rewrite();
  [[noreturn]] void fail() const;

  std::filesystem::path jsonl_, csv_;
  std::map<std::string, std::size_t> columns_;  ///< by metric, without the step's
  int descriptor_ = -1;
};

}  // namespace heed
