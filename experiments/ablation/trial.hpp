#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "experiments/run/experiment.hpp"
#include "experiments/run/session.hpp"

namespace heed {

/// Why a trial did not finish: its last message, and the end of its log.
struct Failure {
  std::string message;
  std::vector<std::string> log;
  bool diverged = false;  ///< NaN or infinity: the same program would fail again
};

/// A trial that is trained in a child process, so that a crash ends no other trial. Its output goes to log.txt in its folder. If the parent
/// ends, the child saves a checkpoint and ends too; only a trial with a finished summary.json counts as done. The child locks the folder
/// and records its failure there: a parent that is stopped keeps no other process from the trial.
class Trial {
 public:
  /// The exit code of a child whose folder another process holds.
  static constexpr int elsewhere = 75;

  /// Starts the child. Must be called before this process has computed anything on threads. Throws Error if no process can be started.
  Trial(LoadedExperiment& experiment, int threads);
  Trial(Trial&& other) noexcept : process_(std::exchange(other.process_, -1)) {}
  Trial& operator=(Trial&& other) noexcept {
    std::swap(process_, other.process_);
    return *this;
  }
  ~Trial();

  /// The child's exit code once it has ended, or 128 + the signal that killed it; nothing while it runs.
  std::optional<int> ended();
  /// Sends a signal to the child.
  void signal(int number) const;

 private:
  pid_t process_ = -1;
};

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

}  // namespace heed
