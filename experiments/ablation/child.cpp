#include "experiments/ablation/child.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/program/failure.hpp"
#include "experiments/program/signals.hpp"

#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace heed {

#if defined(__linux__)

void get_signal_when_parent_ends(int signal) { ::prctl(PR_SET_PDEATHSIG, signal); }

void close_files() { ::close_range(STDERR_FILENO + 1, ~0U, 0); }

#else

/// Polls ten times a second, because the system sends no notification.
void get_signal_when_parent_ends(int signal) {
  std::thread([signal, parent = ::getppid()] {
    while (::getppid() == parent) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::kill(::getpid(), signal);
  }).detach();
}

void close_files() {
  for (int descriptor = STDERR_FILENO + 1; descriptor < ::getdtablesize(); ++descriptor) ::close(descriptor);
}

#endif

namespace {

constexpr std::chrono::seconds between_tables{10};
constexpr std::chrono::seconds last_tables_wait{3};  // with the last tables of a call that is interrupted

/// The child's main function. Errors are reported by the last tables, which the parent writes.
[[noreturn]] void run_child(std::function<void()> const& write) {
  get_signal_when_parent_ends(SIGKILL);
  ::signal(SIGINT, SIG_IGN);
  close_files();
  int const nowhere = ::open("/dev/null", O_RDWR);
  for (int const stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, stream);
  guarded([&] {
    write();
    return Exit::done;
  });
  ::_exit(0);
}

}  // namespace

Exit in_child(std::string const& what, std::function<Exit()> const& f) {
  std::fflush(nullptr);
  pid_t const child = ::fork();
  if (child < 0) throw Error(fmt::format("no process can be started: {}", std::strerror(errno)));
  if (child == 0) {
    get_signal_when_parent_ends(SIGKILL);
    auto const code = guarded(f);
    std::fflush(nullptr);
    ::_exit(static_cast<int>(code));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status)) return static_cast<Exit>(WEXITSTATUS(status));
  return fail(Exit::other, fmt::format("{} was killed by signal {} ({})", what, WTERMSIG(status), ::strsignal(WTERMSIG(status))));
}

void Writer::something_ended() {
  auto const now = std::chrono::steady_clock::now();
  if (now < next_ || (process_ > 0 && ::waitpid(process_, nullptr, WNOHANG) == 0)) return;
  next_ = now + between_tables;
  std::fflush(nullptr);
  process_ = ::fork();
  if (process_ == 0) run_child(write_);
}

void Writer::wait() {
  auto const end = std::chrono::steady_clock::now() + last_tables_wait;
  for (bool signalled = false; process_ > 0; std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
    auto const result = ::waitpid(process_, nullptr, WNOHANG);
    if (result == process_ || (result < 0 && errno != EINTR)) break;
    if (signalled || !interrupted() || std::chrono::steady_clock::now() < end) continue;
    ::kill(process_, SIGTERM);  // it draws, and gnuplot hangs
    signalled = true;
  }
  process_ = -1;
}

}  // namespace heed
