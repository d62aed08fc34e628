#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "experiments/program/failure.hpp"
#include "experiments/program/run_options.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/decode.hpp"

namespace heed {

/// Options of `heed inspect`.
struct InspectOptions {
  std::filesystem::path run;  ///< a run's folder or its checkpoint, or the run's name in the output folder
  Folders folders;
  std::string weights;  ///< last, average, best; empty: the default of open_run()
  std::string text;     ///< token ids for a model of data without text; "[MASK]" is a masked model's mask token
  /// For a model with a source or a picture; default: its own output. For labelled examples: the second text.
  std::optional<std::string> target;
  std::optional<Index> row;                              ///< for a model of pictures: which held-out picture, from 1
  BeamSettings beam{.width = 1, .length_penalty = 0.6};  ///< search for the model's own output
  std::filesystem::path picture;                         ///< .svg, .pdf or .png showing the attention of each word; empty: none
  std::filesystem::path save;                            ///< empty: attention.npz in the run's folder
  std::size_t width = 0;                                 ///< columns of the terminal; 0: unlimited
  bool printable = false;                                ///< for a terminal: control characters are shown as U+FFFD
  bool quiet = false;                                    ///< no table
};

/// Attention weights of a trained model for a text or for a picture of its data: a table for every layer and head on `out`, and an .npz
/// file with the arrays of AttentionMaps. Throws ConfigError for a text that the model cannot read and if there is no such run, FileError
/// for a damaged run, Error for a file that cannot be written.
Exit inspect(InspectOptions const& options, std::ostream& out);

/// Weights [n, m] as text, in hundredths, keys across and queries down; "·" for a weight of exactly 0. Keys that exceed `width` columns (0:
/// unlimited) continue below, with the queries repeated.
std::string attention_table(Tensor const& weights, std::vector<std::string> const& queries, std::vector<std::string> const& keys,
                            std::size_t width);

}  // namespace heed
