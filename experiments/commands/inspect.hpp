#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "experiments/run/experiment.hpp"
#include "experiments/run/session.hpp"
#include "nn/decode.hpp"

namespace heed {

/// What the command line says of an inspection.
struct InspectOptions {
  std::filesystem::path run;  ///< a run's folder or its checkpoint, or the run's name in the output folder
  Places places;
  std::string weights;                ///< last, average, best; empty: as usual (open_run)
  std::string text;                   ///< tokens' numbers for a model of data without a text; "[MASK]" in it is a masked model's own token
  std::optional<std::string> target;  ///< of a model that reads a source or sees a picture; default: what it writes itself; of labelled
                                      ///< examples the second text
  std::optional<std::int64_t> row;    ///< of a model that sees pictures: which of the held-out ones, from 1
  BeamSettings beam{.width = 1, .length_penalty = 0.6};  ///< how it writes that
  std::filesystem::path picture;                         ///< .svg, .pdf or .png that shows where each word looked; empty: none
  std::filesystem::path save;                            ///< empty: attention.npz in the run's folder
  std::size_t width = 0;                                 ///< columns of the terminal; 0: any number
  bool printable = false;                                ///< for a terminal: control characters are shown as U+FFFD
  bool quiet = false;                                    ///< no table
};

/// Attention weights of a trained model for a text, or of a picture of its data: a table for every layer and head on `out`, and an .npz
/// file with the arrays of AttentionMaps. Throws ConfigError for a text that the model cannot read and if there is no such run, FileError
/// for a damaged run, Error for a file that cannot be written.
Exit inspect(InspectOptions const& options, std::ostream& out);

/// Weights [n, m] as lines of hundredths below their keys: a row a query, "·" for a weight of exactly 0. Keys beyond `width` columns
/// (0: any number) follow below, with the queries again.
std::string attention_table(Tensor const& weights, std::vector<std::string> const& queries, std::vector<std::string> const& keys,
                            std::size_t width);

}  // namespace heed
