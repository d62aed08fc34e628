#include "experiments/program/signals.hpp"

#include <atomic>
#include <cerrno>
#include <ctime>

#include <signal.h>
#include <unistd.h>

#include "experiments/program/system.hpp"

namespace heed {

namespace {

std::atomic<int> noted = 0;
std::atomic<int> last_signal = 0;
std::atomic<bool> sigint_came = false;  // by SIGINT
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free, "a signal handler must not wait");

extern "C" void note(int signal) {
  int const before = errno;
  if (signal == SIGINT && sigint_came.exchange(true)) {
    [[maybe_unused]] auto const written = ::write(STDERR_FILENO, "\n", 1);  // ends the line of the progress bar
    ::_exit(130);
  }
  last_signal = signal;
  ++noted;
  errno = before;
}

}  // namespace

void note_signals() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;  // interrupted reads and writes are restarted
  sigemptyset(&action.sa_mask);
  for (int const signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
  for (int const signal : {SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // ignored signals stay ignored, as under nohup
  }
}

bool interrupted() { return noted > 0; }

int signals_noted() { return noted; }

StopReason stop_reason() {
  if (sigint_came) return StopReason::asked;
  if (auto const at = integer_in_environment("SLURM_JOB_END_TIME")) {
    constexpr Index near = 300;  // Slurm may send a warning up to a minute earlier than asked for
    return *at - static_cast<Index>(std::time(nullptr)) <= near ? StopReason::out_of_time : StopReason::preempted;
  }
  int const signal = last_signal;
  return signal == SIGTERM || signal == SIGHUP ? StopReason::preempted : StopReason::out_of_time;
}

}  // namespace heed
