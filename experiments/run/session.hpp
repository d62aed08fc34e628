#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/run/experiment.hpp"
#include "experiments/run/folder.hpp"

namespace heed {

/// What the command line says about a run, besides the file.
struct RunOptions {
  std::filesystem::path config;
  std::vector<std::string> overrides;  ///< key.path=value
  Folders folders;
  bool quiet = false;
  bool fresh = false;            ///< move an old folder of the same name aside and start anew
  std::optional<Index> jobs;     ///< parallel trials of an ablation; default: cores / threads
  std::optional<Index> threads;  ///< default: 1 per trial of an ablation and per rank, else all cores
  std::string shard;             ///< --shard I/N, also in `overrides`
  bool slurm = false;            ///< `heed plan`: a script for Slurm instead of a table
  std::optional<Index> tasks;    ///< processes of that script that share the trials; default: as many as trials, at most 1,000
  std::optional<Index> shards;   ///< or shards, each in a folder of its own
};

/// The exit codes of the program (experiments/README.md).
enum class Exit : int { done = 0, other = 1, usage = 2, data = 3, failed = 4, interrupted = 130 };

/// Training failed: NaN or divergence; the message names step, operation and layer.
struct TrainingError : Error {
  using Error::Error;
};

/// A run's folder cannot be used: it holds another configuration (the message names the keys that differ), was begun with other data or on
/// another machine, another process works in it, or its file system has no locks.
struct FolderError : Error {
  using Error::Error;
};

/// The folder of a run's results.
std::filesystem::path folder_of(LoadedExperiment const& experiment);

/// Trains the experiment in its folder, or resumes it there. `fresh`: moves an older folder aside first. Throws FileError, FolderError,
/// TrainingError. Returns done or interrupted.
Exit train(LoadedExperiment& experiment, bool quiet, bool fresh);
/// The same in a folder that this process has already locked.
Exit train(LoadedExperiment& experiment, bool quiet, FolderLock const& lock);

/// Whether a run is finished: it has its summary, and has made as many steps as `settings` ask for, or has stopped early before.
bool is_finished(std::filesystem::path const& folder, Experiment const& settings);

}  // namespace heed
