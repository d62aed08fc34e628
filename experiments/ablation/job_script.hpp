#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heed {

/// What a batch system has to know of an ablation.
struct SweepPlan {
  std::string name;                  ///< of the ablation
  std::vector<std::string> command;  ///< that runs it: program, "run", file, changes, options
  std::string folder{};              ///< where the command is to be run
  std::size_t trials = 0;            ///< that are left to train
  std::int64_t tasks = 1;            ///< processes that share them
  std::int64_t threads = 1;          ///< of each
  double longest = 0;                ///< seconds of the longest trial
  double seconds = 0;                ///< of all that are left, one after another
  double bytes = 0;                  ///< of the largest trial
  std::string machine{};             ///< where these were measured
};

/// Seconds that a task may need: its share of the trials, as if all were the longest, half as much again, and five minutes.
double time_limit(SweepPlan const& plan);
/// Bytes that a task may need: a quarter more than estimated, and 256 MB for the program, in whole units of 256 MB.
double memory_limit(SweepPlan const& plan);

/// An sbatch script of an array of jobs: two minutes before its time is up, a task gets SIGUSR1, saves, ends with 130, and is queued again.
std::string slurm_script(SweepPlan const& plan);
/// Lines of commands for GNU parallel.
std::string parallel_jobs(SweepPlan const& plan);
/// An indexed Job of Kubernetes, for `kubectl apply -f`; the image's name and the volume's are to be filled in.
std::string kubernetes_job(SweepPlan const& plan);

/// A script that `heed plan --NAME` writes.
struct JobScript {
  std::string name, help;
  std::string (*write)(SweepPlan const& plan);
};
std::vector<JobScript> const& job_scripts();

}  // namespace heed
