#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "experiments/run/experiment.hpp"
#include "experiments/run/session.hpp"
#include "nn/decode.hpp"

namespace heed {

/// What the command line says of an evaluation.
struct EvaluateOptions {
  std::filesystem::path run;  ///< a run's folder or its checkpoint, or the run's name in the output folder
  Places places;
  std::string split = "validation";                 ///< validation, or test where the data have one
  BeamSettings search{.width = 1};                  ///< of decoded targets; of width 1: greedily
  std::optional<std::vector<std::string>> metrics;  ///< kinds by their names; nothing: all that apply
  std::string weights;                              ///< last, average, best; empty: as usual (open_run)
  std::optional<std::int64_t> batch;                ///< rows at once; default: as the run's evaluations
  std::filesystem::path save;                       ///< a .csv or .json alone instead of the run's folder
  std::filesystem::path text, ids;                  ///< instead of held-out data a text, or numbers of tokens (little-endian int32)
  std::optional<std::int64_t> stride;               ///< of a text: tokens between windows; default: the model's context
  std::optional<DType> dtype;                       ///< to compute in; default: as the weights were trained
  bool quiet = false;
};

/// Computes the metrics of a run's held-out data, of all rows and by their length: a table to `out`, then in the run's folder
/// evaluation-SPLIT results.csv, results.json, metrics_by_length.svg and .pdf and, of decoded targets, decoded.txt. Options that change the
/// results have a folder of their own: evaluation-SPLIT[-last][-float64][-beamN[-penaltyX]][-only-METRIC+METRIC]. Each is replaced as a
/// whole (write_folder). Results depend on rows at once and threads by no more than rounding. Throws ConfigError if there is no such run,
/// split or metric, or no metric is named; FileError for a damaged run, and for data that are not those of its training; Error for files
/// that cannot be written, when the table has been printed.
Exit evaluate(EvaluateOptions const& options, std::ostream& out);

/// The trained model at a path, with the weights and in the type that the options ask for. Throws what open_run() throws, and ConfigError
/// for averaged weights of a run that keeps none.
TrainedModel open_for_evaluation(std::filesystem::path const& path, EvaluateOptions const& options);

/// `heed evaluate RUN --text FILE` and `--ids FILE`: the loss of a text, in windows of the model's context (text_loss), as nat a token,
/// perplexity and, of text without unknown words, bits a byte and perplexity a byte and a word, all as the metrics of these names have them
/// (metric/text_units.cpp). A table to `out`, and `save` if it is named. Throws ConfigError for a model that predicts no
/// next token or has no tokenizer, and for options of held-out data; FileError for a text that cannot be read or holds what the tokenizer
/// does not know.
Exit evaluate_text(EvaluateOptions const& options, std::ostream& out);

}  // namespace heed
