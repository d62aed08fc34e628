#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <sys/types.h>

#include "experiments/program/failure.hpp"

namespace heed {

/// In a child after fork(): asks for this signal when the parent ends.
void get_signal_when_parent_ends(int signal);
/// Calls f in a child process and returns its exit code, as guarded() has it. Prints that `what` was killed, if it was. Throws Error if no
/// process can be started.
Exit in_child(std::string const& what, std::function<Exit()> const& f);
/// Closes all files but the standard streams: the parent's locks are its own.
void close_files();

/// Writes tables and report from time to time while trials are running, in a process of its own, so that this one can start trials without
/// delay.
class Writer {
 public:
  explicit Writer(std::function<void()> write) : write_(std::move(write)) {}
  ~Writer() { wait(); }
  Writer(Writer const&) = delete;
  Writer& operator=(Writer const&) = delete;

  /// Starts writing, unless a writer is running or ended recently.
  void something_ended();
  /// Waits until nothing is being written.
  void wait();

 private:
  std::function<void()> write_;
  pid_t process_ = -1;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace heed
