#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/program/command.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/program/run_options.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/decode.hpp"

namespace heed {

/// The parsed command line.
struct CommandLine {
  std::string page;     ///< output of --help and --version; if not empty, there is nothing else to do
  std::string command;  ///< its name
  GlobalOptions everywhere;
  std::shared_ptr<void> options;  ///< the command's own
  std::function<Exit(GlobalOptions const&)> run;
};

/// heed's version and revision on one line.
std::string version();

/// Parses the arguments after the program's name. Throws ConfigError about an argument, with the nearest command or option.
CommandLine parse_command_line(std::vector<std::string> arguments);

/// Trains the run or all trials of the ablation that the file describes, or makes the study; resumes what was interrupted; leaves a
/// finished folder with its report. Throws ConfigError, FileError, FolderError, TrainingError. Returns done or interrupted.
Exit run(RunOptions const& options);

/// Validates the file, data and memory included, and prints the resolved configuration.
Exit check(RunOptions const& options);

/// A JSON Schema (draft 7) of configuration files, generated from the settings: for editors that complete and check YAML.
std::string schema();

/// Compares any runs: the keys in which their configurations differ, the validation metrics over time, and the final values. Runs are
/// folders, or names in the output folder. Throws ConfigError if there is no such run, FileError for a damaged one.
Exit compare_runs(std::vector<std::filesystem::path> const& runs, Folders const& folders, std::ostream& out);

struct ReportOptions {
  std::vector<std::filesystem::path> paths;  ///< of ablations, runs and studies; names are also looked up in the output folder
  Folders folders;
  bool quiet = false;
};

/// `heed report`: writes the report of each folder and, for several, one report.html of all in the output folder; a running ablation's
/// report covers its finished trials. Throws ConfigError for a missing folder, FileError.
Exit report(ReportOptions const& options);

struct EvaluateOptions : ChosenRun {
  std::string split = "validation";                 ///< validation, or test where the data have one
  BeamSettings search{.width = 1};                  ///< for decoding targets; width 1: greedy
  std::optional<std::vector<std::string>> metrics;  ///< names of metrics; nothing: all that apply
  std::optional<Index> batch;                       ///< sequences at once; default: as in the run's evaluations
  std::filesystem::path save;                       ///< a .csv or .json file to write instead of the run's folder
  std::filesystem::path text, ids;                  ///< evaluate this text, or token ids (little-endian int32), instead of held-out data
  std::filesystem::path table;                      ///< or labelled examples of another file, in the form of the run's data
  std::optional<Index> stride;                      ///< for a text: tokens between windows; default: the model's context
  std::optional<DType> dtype;                       ///< to compute in; default: as the weights were trained
  bool quiet = false;
};

/// Computes the metrics of a run's held-out data, for all sequences and by their length: a table to `out`, then in the run's folder
/// evaluation-SPLIT (of another table evaluation-table-NAME) results.csv, results.json, metrics_by_length.svg and .pdf, for decoded targets
/// decoded.txt, for classes confusion.csv, .svg and .pdf. Options that change the results get a folder of their own, replaced as a whole:
/// evaluation-SPLIT[-last][-float64][-beamN[-penaltyX]][-only-METRIC+METRIC]. Batch size and threads change results by rounding only.
/// Throws ConfigError if there is no such run, split or metric, or no metric is named; FileError for a damaged run or other data than it
/// was trained on; Error for files that cannot be written, after the table.
Exit evaluate(EvaluateOptions const& options, std::ostream& out);

/// `heed evaluate RUN --text FILE` and `--ids FILE`: the loss of a text in windows of the model's context (text_loss), as nat per token,
/// perplexity and, for text without unknown words, bits per byte and perplexity per byte and per word (metric/loss.cpp). A table to
/// `out`, and `save` if given. Throws ConfigError for a model that does not predict the next token or has no tokenizer, and for options of
/// held-out data; FileError for a text that cannot be read or that the tokenizer cannot encode.
Exit evaluate_text(EvaluateOptions const& options, std::ostream& out);

struct SampleOptions : ChosenRun {
  std::vector<std::string> prompts;  ///< empty: a line break, or the beginning of a sentence
  std::optional<Index> tokens;       ///< at most, after the prompt; default: 500, for sentences the model's context
  std::optional<Index> count;        ///< samples per prompt; default: 1, for sentences 10
  SamplingSettings sampling;
  Index seed = 1;
  std::optional<std::string> precision;  ///< of products' factors: float32, bfloat16; default: as in training
  bool printable = false;                ///< for a terminal: control characters are shown as U+FFFD
};

/// Writes text from a trained model as it is generated: several texts each below a line "--- 1 of 4 ---", sentences one per line. Sample c
/// of prompt p has its own stream: it does not depend on how many there are. Throws ConfigError if there is no such run, for a model
/// without text, a prompt that it cannot read, a precision that does not fit its dtype; FileError for a damaged run.
Exit sample(SampleOptions const& options, std::ostream& out);

/// A stream of bytes as text: incomplete characters wait for their other bytes; bytes that are not UTF-8 become U+FFFD.
class Utf8Writer {
 public:
  /// `printable`: control characters other than tab and line feed become U+FFFD too.
  explicit Utf8Writer(bool printable = false) : printable_(printable) {}
  /// The text that is complete so far.
  std::string push(std::string_view bytes) {
    waiting_ += bytes;
    return take(false);
  }
  /// The remaining bytes.
  std::string finish() { return take(true); }

 private:
  std::string take(bool all);
  bool printable_;
  std::string waiting_;
};

struct TokenizeOptions {
  std::string file;            ///< the text, or a folder of texts; relative to the working folder, then to the data folder
  std::string vocabulary;      ///< its folder, likewise; empty: train one
  std::optional<Index> train;  ///< size of the vocabulary to train, which is left in the output folder
  std::filesystem::path ids;   ///< file for the token ids; empty: none
  bool special = false;        ///< text of special tokens is read as these tokens
  Folders folders;
  bool quiet = false;
};

/// `heed tokenize`: trains a vocabulary if asked to, prints the numbers of tokens, bytes and words of the text and their ratios, and writes
/// the ids as little-endian int32. Throws FileError for invalid files, Error for one that cannot be written.
Exit tokenize(TokenizeOptions const& options, std::ostream& out);

}  // namespace heed
