#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/run/experiment.hpp"
#include "experiments/run/folder.hpp"

namespace heed {

/// What the command line says about a run beside the file.
struct RunOptions {
  std::filesystem::path config;
  std::vector<std::string> overrides;  ///< key.path=value
  Places places;
  bool quiet = false;
  bool fresh = false;                   ///< put an old folder of the same name aside, and start anew
  std::optional<std::int64_t> jobs;     ///< trials of an ablation at a time; default: cores / threads
  std::optional<std::int64_t> threads;  ///< of each trial; default 1
  std::int64_t shard = 1, shards = 1;   ///< of an ablation's trials: begin with the first of this part
  std::string script;                   ///< of `heed plan`: for which batch system (job_scripts()); empty: a table
  std::optional<std::int64_t> tasks;    ///< of that script; default: as many as trials, at most 1,000
};

/// The exit codes of the program (experiments/README.md).
enum class Exit : int { done = 0, other = 1, usage = 2, data = 3, failed = 4, interrupted = 130 };

/// Training failed: NaN or divergence, with step, operation and layer.
struct TrainingError : Error {
  using Error::Error;
};

/// A run's folder holds something else: the message names the keys that differ.
struct FolderError : Error {
  using Error::Error;
};

/// Where a run leaves what it makes.
std::filesystem::path folder_of(LoadedExperiment const& experiment);

/// Trains the experiment in its folder, or goes on there. `fresh` puts an older folder aside first. Throws FileError, FolderError,
/// TrainingError. Returns done or interrupted.
Exit train(LoadedExperiment& experiment, bool quiet, bool fresh);
/// The same in a folder that this process has locked already.
Exit train(LoadedExperiment& experiment, bool quiet, FolderLock lock);

/// A run that has its summary, and as many steps as are asked for, or has stopped early on the way to them, is done.
bool is_finished(std::filesystem::path const& folder, Experiment const& settings);

}  // namespace heed
