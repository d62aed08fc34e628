#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "experiments/run/experiment.hpp"
#include "experiments/run/folder.hpp"
#include "experiments/run/session.hpp"

namespace heed {

/// Why a trial did not finish: what it said last, and the end of its log.
struct Failure {
  std::string message;
  std::vector<std::string> log;
  bool diverged = false;  ///< its numbers were not finite any more: the same program would come to the same end
};

/// A trial that is being trained by a process of its own, so that its end is nobody else's. Its output goes to log.txt in its folder. The
/// child ends when its parent does, after saving a checkpoint; a finished trial has its summary.json, and nothing else counts as done.
/// The folder is locked as long as either of them lives: nobody else trains there until the child has ended and its end is recorded.
class Trial {
 public:
  /// Starts it in its folder, which is locked. Must be called before this process has computed anything on threads. Throws Error if no
  /// process can be started.
  Trial(LoadedExperiment& experiment, int threads, FolderLock claim);
  Trial(Trial&& other) noexcept : claim_(std::move(other.claim_)), process_(std::exchange(other.process_, -1)) {}
  Trial& operator=(Trial&& other) noexcept {
    std::swap(claim_, other.claim_);
    std::swap(process_, other.process_);
    return *this;
  }
  ~Trial();

  /// Its exit code, once it has ended; 128 + the signal that killed it.
  std::optional<int> ended();
  void signal(int number) const;
  /// Whether another process has taken the trial over (FolderLock::lost).
  bool lost() const { return claim_.lost(); }

 private:
  FolderLock claim_;
  pid_t process_ = -1;
};

/// What a trial's folder says of its failure; nothing if none is recorded. Throws FileError if the record cannot be read.
std::optional<Failure> failure_of(std::filesystem::path const& folder);
/// Records a failure from the exit code and the log, in one step.
Failure record_failure(std::filesystem::path const& folder, int code);
/// Removes the records of failures in an ablation's folder, so that those trials are tried again; but for trainings that this very program
/// would end in the same way (NaN, divergence): what is older than the program is forgotten too.
void forget_failures(std::filesystem::path const& ablation);
/// Puts finished trials aside whose rows are not those that they were finished with, and says so: those that
/// the ablation still has are trained again. Throws Error if
/// one cannot be put aside.
void put_damaged_aside(std::filesystem::path const& ablation);

}  // namespace heed
