#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/experiment.hpp"

namespace heed {

/// What the command line says about a run beside the file.
struct RunOptions {
  std::filesystem::path config;
  std::vector<std::string> overrides;  ///< key.path=value
  Places places;
  bool quiet = false;
  bool fresh = false;  ///< put an old folder of the same name aside, and start anew
};

/// The exit codes of design.md.
enum class Exit : int { done = 0, other = 1, usage = 2, data = 3, failed = 4, interrupted = 130 };

/// Training failed: NaN or divergence, with step, operation and layer.
struct TrainingError : Error {
  using Error::Error;
};

/// A run's folder holds something else: the message names the keys that differ.
struct FolderError : Error {
  using Error::Error;
};

/// Trains what the file describes, or goes on where an earlier call was cut off, and leaves a finished run folder. Throws ConfigError,
/// FileError, FolderError, TrainingError. Returns done or interrupted.
Exit run(RunOptions const& options);

/// Validates the file, data and memory included, and prints the resolved configuration.
Exit check(RunOptions const& options);

}  // namespace heed
