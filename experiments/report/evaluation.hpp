#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/metric/lengths.hpp"
#include "experiments/run/record.hpp"

namespace heed {

/// What an evaluation found.
struct Evaluation {
  /// Of some rows.
  struct Part : LengthGroup {
    Row values;  ///< of metrics, by their names
    Row errors;  ///< the standard errors of these
  };
  std::string run, split, weights;
  std::int64_t step = 0;
  std::optional<BeamSettings> search;  ///< how targets were decoded, if any were
  std::string length_of;               ///< as ByLength's
  Part whole;
  std::vector<Part> by_length;                                  ///< empty if rows do not differ in length
  std::vector<std::pair<std::string, double>> references = {};  ///< losses of n-grams and the like on the same rows, in nat per token
};

/// A head line and a table: a row a metric with its standard error, a column a group of rows.
std::string table_of(Evaluation const& evaluation);
/// metric,unit,length,shortest,longest,rows,value,standard_error: a line for each metric and group of rows, of all of them first ("all").
std::string csv_of(Evaluation const& evaluation);
std::string json_of(Evaluation const& evaluation);
/// metrics_by_length.svg and .pdf, contents by name: a panel a metric with its standard errors. Empty if rows do not differ in length;
/// nothing if gnuplot is not installed. Throws what draw() throws.
std::optional<std::map<std::string, std::string>> draw_by_length(Evaluation const& evaluation);

}  // namespace heed
