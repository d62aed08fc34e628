#pragma once

#include <filesystem>

#include "experiments/program/failure.hpp"
#include "experiments/program/run_options.hpp"

namespace heed {

/// Options of `heed watch`.
struct WatchOptions {
  std::filesystem::path folder;  ///< an ablation's folder, or its name in the output folder
  Folders folders;
  bool once = false;  ///< print the state once, on standard output
  Index every = 5;    ///< seconds between looks
};

/// `heed watch`: shows the progress of an ablation that other processes train, on this machine or others, until all its trials have ended
/// (without a terminal, or behind a pipe, until nobody trains): the state of each arm and seed, the hosts and how old their last rows are,
/// and trials that timed out repeatedly. Reads files and tries locks, and writes nothing. Throws ConfigError if the folder is not an
/// ablation's. Returns done, failed if a trial failed, or interrupted.
Exit watch_ablation(WatchOptions const& options);

/// The trials that timed out three times or more, one line each: "dot-seed1-0123abcd timed out 3 times: …".
std::string timed_out_trials(std::filesystem::path const& ablation);

}  // namespace heed
