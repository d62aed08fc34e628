#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>

#include "experiments/program/failure.hpp"
#include "experiments/train/experiment.hpp"

namespace heed {

/// The exit code of f in a child process, as guarded() has it. Prints that `what` was killed, if it was. Throws Error if none starts.
Exit in_child(std::string const& what, std::function<Exit()> const& f);

/// A trial that is trained in a child process, so that a crash ends no other trial. Its output goes to log.txt in its folder. If the parent
/// ends, the child saves a checkpoint and ends too; only a trial with a finished summary.json counts as done. The child locks the folder
/// and records its failure there: a parent that is stopped keeps no other process from the trial.
class Trial {
 public:
  /// The exit code of a child whose folder another process holds.
  static constexpr Exit elsewhere{75};

  /// Starts the child. Must be called before this process has computed anything on threads. Throws Error if no process can be started.
  Trial(LoadedExperiment& experiment, int threads);
  ~Trial();
  Trial(Trial const&) = delete;
  Trial& operator=(Trial const&) = delete;

  /// The child's exit code once it has ended, or 128 + the signal that killed it; nothing while it runs.
  std::optional<int> ended();
  void signal(int number) const;

 private:
  pid_t process_ = -1;
};

/// Writes tables and report from time to time while trials run, in a process of its own: this one starts trials without delay.
class Writer {
 public:
  explicit Writer(std::function<void()> write) : write_(std::move(write)) {}
  ~Writer() { wait(); }
  Writer(Writer const&) = delete;
  Writer& operator=(Writer const&) = delete;

  /// Starts writing, unless a writer is running or ended recently.
  void something_ended();
  void wait();

 private:
  std::function<void()> write_;
  pid_t process_ = -1;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace heed
