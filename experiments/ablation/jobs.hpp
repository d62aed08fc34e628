#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/ablation/plan.hpp"
#include "experiments/folder/record.hpp"

namespace heed {

/// Why a trial did not finish: its last message, and the end of its log.
struct Failure {
  std::string message;
  std::vector<std::string> log;
  bool diverged = false;  ///< NaN or infinity: the same program would fail again
};

/// A trial and its progress.
struct Job {
  /// elsewhere: another process trains it; other_shard: it is not this shard's; spared: nobody needs it (give_out_seeds).
  enum class State { waiting, running, done, failed, elsewhere, other_shard, spared };
  std::size_t arm = 0;
  Index seed = 0;
  LoadedExperiment experiment;
  State state = State::waiting;
  double share = 0;                          ///< fraction of its steps that are done
  double seconds = 0;                        ///< of training so far, in this call; after look_at(): as a finished trial recorded
  std::shared_ptr<History const> history{};  ///< its rows, once done
  std::optional<double> value{};             ///< the metric's value, once done
  Failure failure{};
  std::string host{};  ///< host that trains it elsewhere; set by look_at()

  bool has_ended() const { return state == State::done || state == State::failed; }
  /// Whether nothing is left to be done for it here.
  bool is_settled() const { return has_ended() || state == State::other_shard || state == State::spared; }
  std::filesystem::path folder() const { return experiment.folders.output / experiment.settings.name; }
};

/// The value of the ablation's metric that is compared: the last or the best (`at`). If a run has kept the weights of an earlier step
/// (`kept`: kept_step()), the last value is that of this step, if the metric has one there. Nothing if the run has no value.
std::optional<double> metric_value(History const& history, AblationSettings const& settings, std::optional<Index> kept = {});

/// The value with which a trial is compared: the worst for one that diverged; nothing for one that failed otherwise, or has not ended.
std::optional<double> compared_value(Job const& job, AblationSettings const& settings);

bool any_failed(std::vector<Job> const& jobs);

struct Workers {
  Index jobs = 1;                                                ///< jobs at a time
  Index threads = 1;                                             ///< threads per job
  std::optional<std::chrono::steady_clock::time_point> until{};  ///< when jobs save a checkpoint and end
};

/// The workers that the command line asks for; default: one thread per trial, and cores / threads trials at a time.
Workers workers_for(RunOptions const& options);

/// Called with the state of all jobs. `changed`: the job whose state has changed, null if only time has passed.
using Watcher = std::function<void(std::vector<Job> const& jobs, Job const* changed)>;

/// Sets the state of each job from its folder: done (with its recorded time), failed, elsewhere (with the host that trains it) or waiting.
/// Does not read the folders of jobs that are known to have ended, or are another shard's. Reads only.
void look_at(std::vector<Job>& jobs, AblationSettings const& settings);

/// Trains the jobs that no other process trains, several at a time, each in a process of its own, until every job of this shard is done or
/// has failed, here or in another process. A job belongs to who holds the lock on its folder; others watch it, and train it if the lock is
/// given up before its end. A job whose folder is already finished is done at once; a recorded failure is final. Returns false after a
/// signal to stop: the jobs that ran here have then saved a checkpoint.
bool run_jobs(std::vector<Job>& jobs, AblationSettings const& settings, Workers const& workers, Watcher const& watch);

/// The failure recorded in a trial's folder; nothing if none is recorded. Throws FileError if the record cannot be read.
std::optional<Failure> failure_of(std::filesystem::path const& folder);
/// Writes failure.json, atomically, from the exit code and the end of the log. Returns the failure.
Failure record_failure(std::filesystem::path const& folder, int code);
/// Removes the records of failures in an ablation's folder, so that those trials are tried again. Records of divergence (NaN) that are
/// newer than the program are kept: the same program would diverge again.
void forget_failures(std::filesystem::path const& ablation);
/// Moves finished trials aside whose metrics.jsonl is not the file that they finished with, and prints their names; those that the ablation
/// still has are trained again. Throws Error if one cannot be moved.
void put_damaged_aside(std::filesystem::path const& ablation);
/// The trials that timed out three times or more, one line each: "dot-seed1-0123abcd timed out 3 times: …".
std::string timed_out_trials(std::filesystem::path const& ablation);

// ---------------------------------------------------------------- what is shown of them

/// The state of running trials as text: a line of counts, and a table of arms × seeds. If the page does not have fewer than `width` columns
/// and `height` lines, the line of counts alone. `left`: seconds left, negative if unknown.
std::string board_page(std::string const& title, std::vector<std::string> const& arms, std::vector<Job> const& jobs, double left,
                       std::size_t width, std::size_t height);

/// Estimated seconds until all jobs are done, with `at_a_time` jobs in parallel. A job is expected to take the mean time of its arm's
/// finished jobs, else of all finished jobs; a running job beyond 5 % of its steps is extrapolated. Negative if no time is known.
double seconds_left(std::vector<Job> const& jobs, Index at_a_time);

/// Shows the state of jobs on standard error: on a terminal as a live table, elsewhere with a line for each job that ends.
class Board {
 public:
  Board(std::string title, std::vector<std::string> arms, Index at_a_time, bool quiet);
  ~Board();
  Board(Board const&) = delete;
  Board& operator=(Board const&) = delete;

  /// Redraws the table. `changed`: the job whose state has changed, null if only time has passed.
  void update(std::vector<Job> const& jobs, Job const* changed);
  /// On a terminal, replaces the table by this text; elsewhere prints the text's first line if it has changed.
  void show(std::string const& text);
  void finish();

 private:
  void say(std::vector<Job> const& jobs, Job const& changed);
  void erase();

  std::string title_;
  std::vector<std::string> arms_;
  Index at_a_time_;
  bool quiet_, terminal_;
  std::size_t lines_ = 0;  ///< lines of the table on the terminal
  std::string last_line_;
};

}  // namespace heed
