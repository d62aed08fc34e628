#pragma once

#include <cstdint>
#include <filesystem>

#include "experiments/run/session.hpp"

namespace heed {

/// What the command line says of a look at a sweep.
struct WatchOptions {
  std::filesystem::path folder;  ///< of an ablation; a name is looked for in the output folder too
  Places places;
  bool once = false;       ///< one look, as text on standard output
  bool page = false;       ///< watch.html in the folder, written again with every look
  std::int64_t every = 5;  ///< seconds between looks
};

/// `heed watch`: shows how far an ablation is that other processes train, on this machine or others, until all its trials have ended: arms
/// and seeds with their state and host, who trains and was last heard of when, which trials were preempted or timed out. From the files
/// alone; changes nothing but watch.html. Throws ConfigError for what is no ablation's folder. Returns done, failed if a trial failed, or
/// interrupted.
Exit watch_ablation(WatchOptions const& options);

/// Names trials that ran out of time three times or more: "dot-seed1-0123abcd timed out 3 times: …", a line each.
std::string timed_out_trials(std::filesystem::path const& ablation);

}  // namespace heed
