#pragma once

#include <chrono>
#include <functional>

#include <sys/types.h>

namespace heed {

/// In a child after fork(): it gets the signal when its parent ends.
void get_signal_when_parent_ends(int signal);
/// Closes the descriptors first … last that are open.
void close_descriptors(unsigned first, unsigned last = ~0U);

/// Writes tables and report while trials are running: now and then, in a process of its own, so that this one can go on starting trials and
/// computes nothing before it does.
class Writer {
 public:
  explicit Writer(std::function<void()> write) : write_(std::move(write)) {}
  ~Writer() { wait(); }
  Writer(Writer const&) = delete;
  Writer& operator=(Writer const&) = delete;

  /// Begins to write, unless it is writing still, or has written not long ago.
  void something_ended();
  /// Until nothing is being written.
  void wait();

 private:
  std::function<void()> write_;
  pid_t process_ = -1;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace heed
