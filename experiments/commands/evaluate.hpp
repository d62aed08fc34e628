#pragma once

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

/// Options of `heed evaluate`.
struct EvaluateOptions {
  std::filesystem::path run;  ///< a run's folder or its checkpoint, or the run's name in the output folder
  Folders folders;
  std::string split = "validation";                 ///< validation, or test where the data have one
  BeamSettings search{.width = 1};                  ///< for decoding targets; width 1: greedy
  std::optional<std::vector<std::string>> metrics;  ///< names of metrics; nothing: all that apply
  std::string weights;                              ///< last, average, best; empty: the default of open_run()
  std::optional<Index> batch;                       ///< sequences at once; default: as in the run's evaluations
  std::filesystem::path save;                       ///< a .csv or .json file to write instead of the run's folder
  std::filesystem::path text, ids;                  ///< evaluate this text, or token ids (little-endian int32), instead of held-out data
  std::filesystem::path table;                      ///< or labelled examples of another file, in the form of the run's data
  std::optional<Index> stride;                      ///< for a text: tokens between windows; default: the model's context
  std::optional<DType> dtype;                       ///< to compute in; default: as the weights were trained
  bool quiet = false;
};

/// Computes the metrics of a run's held-out data, for all sequences and by their length: a table to `out`, then in the run's folder
/// evaluation-SPLIT results.csv, results.json, metrics_by_length.svg and .pdf, for decoded targets decoded.txt, for classes confusion.csv,
/// .svg and .pdf; of another table evaluation-table-NAME. Options that change
/// the results get their own folder: evaluation-SPLIT[-last][-float64][-beamN[-penaltyX]][-only-METRIC+METRIC]. A folder is replaced as a
/// whole (write_folder). Results depend on batch size and threads only through rounding. Throws ConfigError if there is no such run, split
/// or metric, or no metric is named; FileError for a damaged run, and for data other than those of its training; Error for files that
/// cannot be written, after the table has been printed.
Exit evaluate(EvaluateOptions const& options, std::ostream& out);

/// `heed evaluate RUN --text FILE` and `--ids FILE`: the loss of a text in windows of the model's context (text_loss), as nat per token,
/// perplexity and, for text without unknown words, bits per byte and perplexity per byte and per word, as defined by the metrics of these
/// names (metric/loss.cpp). A table to `out`, and `save` if given. Throws ConfigError for a model that does not predict the next
/// token or has no tokenizer, and for options of held-out data; FileError for a text that cannot be read or that the tokenizer cannot
/// encode.
Exit evaluate_text(EvaluateOptions const& options, std::ostream& out);

}  // namespace heed
