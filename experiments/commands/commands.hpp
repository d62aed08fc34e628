#pragma once

#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "experiments/run/session.hpp"

namespace heed {

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

/// Options of `heed tokenize`.
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
