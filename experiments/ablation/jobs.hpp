#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/ablation/plan.hpp"
#include "experiments/ablation/trial.hpp"
#include "experiments/run/record.hpp"

namespace heed {

/// A trial and how far it is.
struct Job {
  enum class State { waiting, running, done, failed, elsewhere };  ///< elsewhere: another process is training it
  std::size_t arm = 0;
  std::int64_t seed = 0;
  LoadedExperiment experiment;
  State state = State::waiting;
  double share = 0;               ///< of its steps that are done
  double seconds = 0;             ///< that it took, or has taken so far, in this call
  std::optional<double> value{};  ///< of the metric
  Failure failure{};
  std::string host{};  ///< that trains it elsewhere, where look_at() has looked

  std::filesystem::path folder() const { return experiment.places.output / experiment.settings.name; }
};

/// The value that counts of an ablation's metric: the last, or the best. Of a run whose weights are those of another step than the last
/// (`kept`: kept_step()), the last is that step's, where it has one. Nothing if the run has none.
std::optional<double> value_of(History const& history, AblationSettings const& settings, std::optional<std::int64_t> kept = {});

/// How jobs are run.
struct Workers {
  std::int64_t jobs = 1;               ///< at a time
  std::int64_t threads = 1;            ///< of each
  std::int64_t shard = 1, shards = 1;  ///< begin with the first job of this part; shards 0: with this job
};

/// As the command line says; cores / threads trials of one thread else. Without --shard a process begins where its number in a batch
/// system's array says: SLURM_ARRAY_TASK_ID, SLURM_PROCID, OMPI_COMM_WORLD_RANK or JOB_COMPLETION_INDEX (Kubernetes). A hint only: the
/// processes share all trials.
Workers workers_for(RunOptions const& options);

/// Is told how jobs stand: what happened to one, or (null) that time has passed.
using Watcher = std::function<void(std::vector<Job> const& jobs, Job const* changed)>;

/// Which jobs are done or failed, as their folders say. Touches nothing.
void note_ended(std::vector<Job>& jobs, AblationSettings const& settings);

/// How jobs stand, as their folders say: done, failed, elsewhere or waiting, with the time that those took which are done and the host of
/// those that are being trained. Reads only; leaves out those that are known to have ended.
void look_at(std::vector<Job>& jobs, AblationSettings const& settings);

/// Trains what nobody else does, several at a time, each in a process, until all jobs are done or have failed, here or in another process.
/// A job is claimed by the lock on its folder: a locked one is left to its owner and watched; if the owner dies, it is taken over. A job
/// whose folder is finished already is done at once; a recorded failure is final. False if a signal came: then the jobs that ran here have
/// saved a checkpoint.
bool run_jobs(std::vector<Job>& jobs, AblationSettings const& settings, Workers const& workers, Watcher const& watch);

}  // namespace heed
