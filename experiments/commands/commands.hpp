#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "experiments/run/session.hpp"

namespace heed {

/// Trains what the file describes, or all trials of the ablation that it describes, or makes the study, or goes on where an earlier call
/// was cut off, and leaves a finished folder with its report. Throws ConfigError, FileError, FolderError, TrainingError. Returns done or
/// interrupted.
Exit run(RunOptions const& options);

/// Validates the file, data and memory included, and prints the resolved configuration.
Exit check(RunOptions const& options);

/// A JSON Schema (draft 7) of configuration files, made from the settings' own descriptions: for editors that complete and check YAML.
std::string schema();

/// Any runs beside each other: the keys in which their configurations differ, how each metric of validation went, and where all ended. Runs
/// are folders, or names in the output folder. Throws ConfigError if there is no such run, FileError for a damaged one.
Exit compare_runs(std::vector<std::filesystem::path> const& runs, Places const& places, std::ostream& out);

struct ReportOptions {
  std::vector<std::filesystem::path> folders;  ///< of ablations, runs and studies; a name is looked for in the output folder too
  Places places;
  bool quiet = false;
};

/// `heed report`: the report of each folder and, of several, one report.html of all in the output folder; of an ablation that is running,
/// from what it has finished. Throws ConfigError for a folder that is not there, FileError.
Exit report(ReportOptions const& options);

/// What the command line says of a text and a vocabulary of byte pairs.
struct TokenizeOptions {
  std::string file;                   ///< the text, or a folder of texts; relative to the working folder, then to the data folder
  std::string vocabulary;             ///< its folder, likewise; empty: one is trained
  std::optional<std::int64_t> train;  ///< tokens of the vocabulary that is trained, and left in the output folder
  std::filesystem::path ids;          ///< where the tokens' numbers go; empty: nowhere
  bool special = false;               ///< special tokens that stand in the text are those tokens
  Places places;
  bool quiet = false;
};

/// `heed tokenize`: trains a vocabulary if it is asked to, tells the tokens of the text, its bytes and words and their ratios, and writes
/// the numbers as little-endian int32. Throws FileError for files that are wrong, Error for one that cannot be written.
Exit tokenize(TokenizeOptions const& options, std::ostream& out);

}  // namespace heed
