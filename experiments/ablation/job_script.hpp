#pragma once

#include <string>
#include <vector>

#include "autograd/index.hpp"

namespace heed {

/// The data of an ablation that a job script needs.
struct SweepPlan {
  std::string name;                  ///< the ablation's name
  std::vector<std::string> command;  ///< command that runs the ablation: program, "run", file, changes, options, but not --output
  std::string folder{};              ///< working folder of the command
  std::string output{};              ///< --output; of shards, the folder of their folders
  std::size_t trials = 0;            ///< trials left to train
  Index tasks = 1;                   ///< processes
  bool shards = false;               ///< each task trains a shard in a folder of its own; otherwise they share all trials
  std::size_t share = 1;             ///< trials of a task
  Index threads = 1;                 ///< threads per process
  double longest = 0;                ///< seconds of the longest trial
  double seconds = 0;                ///< seconds of all trials that are left, one after another
  double bytes = 0;                  ///< memory of the largest trial
  std::string machine{};             ///< processor on which these were measured
};

/// Time limit of a task in seconds: 1.5 times its share of the trials, as if all were as long as the longest, and five minutes.
double time_limit(SweepPlan const& plan);
/// Memory limit of a task in bytes: 1.25 times the estimate, and 256 MiB for the program, rounded up to a multiple of 256 MiB.
double memory_limit(SweepPlan const& plan);

/// An sbatch script of an array of jobs. Two minutes before its time limit a task gets SIGUSR1, saves a checkpoint, and is queued again.
std::string slurm_script(SweepPlan const& plan);

}  // namespace heed
