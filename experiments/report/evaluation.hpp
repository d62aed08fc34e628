#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/folder/record.hpp"
#include "experiments/metric/lengths.hpp"
#include "experiments/report/figure.hpp"

namespace heed {

/// The result of an evaluation.
struct Evaluation {
  /// The results of a group of sequences.
  struct Part : LengthGroup {
    Row values;  ///< metrics by name
    Row errors;  ///< their standard errors
  };
  std::string run, split, weights;
  Index step = 0;
  std::optional<BeamSettings> search;  ///< how targets were decoded, if any were
  std::string length_of;               ///< as in ByLength
  Part whole;
  std::vector<Part> by_length;                                  ///< empty if all sequences have one length
  std::vector<std::pair<std::string, double>> references = {};  ///< n-gram and other losses on the same sequences, in nat per token
};

/// A heading and a table: a row per metric with its standard error, a column per group of sequences.
std::string table_of(Evaluation const& evaluation);
/// metric,unit,length,shortest,longest,rows,value,standard_error: a line per metric and group, the group of all first ("all").
std::string csv_of(Evaluation const& evaluation);
std::string json_of(Evaluation const& evaluation);
/// NAME.svg and .pdf of a figure, contents by name. Empty without one; nothing if gnuplot is not installed. Throws as draw().
std::optional<std::map<std::string, std::string>> drawn_files(std::optional<Figure> const& figure);
/// The files of metrics_by_length: a panel per metric, with standard errors. No figure if all sequences have one length.
std::optional<std::map<std::string, std::string>> draw_by_length(Evaluation const& evaluation);

}  // namespace heed
