#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/program/failure.hpp"
#include "experiments/program/run_options.hpp"

namespace heed {

struct Ablation;

/// Checks that every arm can be trained on this machine, then trains every arm with every seed, several trials at a time, resumes
/// interrupted ones, and writes tables, statistics and a report into the ablation's folder. Any number of processes may run the same file:
/// each trains trials that no other one holds, and waits for the others' at the end of a stage. A failed trial is reported at once and
/// stops no other; the next call that finds no other process retries it, unless it ended in NaN or infinity, which the same program
/// reproduces. If an arm cannot be trained, nothing is, and the result is its exit code. `prints`: the summary, unless the options are
/// quiet. Throws ConfigError, FolderError, FileError. Returns done, failed if a trial failed, or interrupted.
Exit run_ablation(Ablation const& ablation, RunOptions const& options, bool prints = true);

/// Validates all arms, their data and memory included, and prints the resolved ablation and base.
Exit check_ablation(Ablation const& ablation, bool quiet);

/// `heed plan`, also of other kinds of files that can be planned: prints arms, number of runs, expected time (from a few steps of each arm,
/// measured here) and what the seeds can detect. Returns done; if an arm cannot be trained, its exit code, before any arm is timed.
Exit plan_ablation(RunOptions const& options);

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

/// Options of `heed watch`.
struct WatchOptions {
  std::filesystem::path folder;  ///< an ablation's folder, or its name in the output folder
  Folders folders;
  bool once = false;  ///< print the state once, on standard output
  Index every = 5;    ///< seconds between looks
};

/// `heed watch`: shows the progress of an ablation that other processes train, until all its trials have ended (without a terminal, or
/// behind a pipe, until nobody trains): each arm and seed, the hosts and how old their last rows are, trials that timed out repeatedly.
/// Writes nothing. Throws ConfigError if the folder is no ablation's. Returns done, failed if a trial failed, or interrupted.
Exit watch_ablation(WatchOptions const& options);

/// The time that is left for an ablation's trials, as `heed plan` estimates it; NaN if an arm cannot be trained.
double planned_seconds(Ablation const& ablation, RunOptions const& options);

/// The folders of results, where those of one ablation are replaced by one if a shard is among them: NAME in the output folder, into which
/// the trials that have ended are copied, unless they are there. Unless quiet, prints which trials none of them brought. Throws FolderError
/// for a folder of another plan (naming the keys), or in which another process trains; ConfigError for a damaged ablation.yaml.
std::vector<std::filesystem::path> with_shards_joined(std::vector<std::filesystem::path> const& results, Folders const& folders,
                                                      bool quiet);

}  // namespace heed
