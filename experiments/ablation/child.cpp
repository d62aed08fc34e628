#include "experiments/ablation/child.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "autograd/parallel.hpp"
#include "experiments/ablation/jobs.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/program/system.hpp"
#include "experiments/train/session.hpp"

#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace heed {

namespace {

#if defined(__linux__)

/// In a child: asks for this signal when the parent ends.
void get_signal_when_parent_ends(int signal) { ::prctl(PR_SET_PDEATHSIG, signal); }

/// Closes all files but the standard streams: the parent's locks are its own.
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

/// A child process that ends with the exit code f returns. Throws Error if none can be started.
pid_t start_child(std::function<Exit()> const& f) {
  std::fflush(nullptr);
  pid_t const child = ::fork();
  if (child < 0) throw Error(fmt::format("no process can be started: {}", std::strerror(errno)));
  if (child == 0) ::_exit(static_cast<int>(f()));
  return child;
}

/// Sends standard output and error to the log and makes standard input empty.
void redirect(fs::path const& log) {
  int const empty = ::open("/dev/null", O_RDONLY);
  int const out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, 0644);
  if (empty >= 0) ::dup2(empty, STDIN_FILENO);
  if (out < 0) return;
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
}

/// Trains the experiment in its folder, which it locks, and records a failure there. Returns the exit code; zero also if another process
/// has finished the trial, or recorded its failure, in the meantime.
Exit run_child(LoadedExperiment& experiment, int threads) {
  fs::path const folder = folder_of(experiment);
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  redirect(folder / "log.txt");
  auto const lock = FolderLock::attempt(folder);
  if (!lock) return Trial::elsewhere;
  if (is_finished(folder, experiment.settings) || failure_of(folder)) return Exit::done;
  set_threads(threads);
  auto const code = guarded([&] { return train(experiment, false, *lock); });
  std::fflush(nullptr);
  if (code != Exit::done && code != Exit::interrupted)
    guarded([&] {
      record_failure(folder, static_cast<int>(code));
      return Exit::done;
    });
  return code;
}

constexpr std::chrono::seconds between_tables{10};
constexpr std::chrono::seconds last_tables_wait{3};  // with the last tables of a call that is interrupted

/// What the writer's child does. Errors are reported by the last tables, which the parent writes.
[[noreturn]] void write_and_exit(std::function<void()> const& write) {
  get_signal_when_parent_ends(SIGKILL);
  ::signal(SIGINT, SIG_IGN);
  close_files();
  redirect("/dev/null");
  guarded([&] {
    write();
    return Exit::done;
  });
  ::_exit(0);
}

}  // namespace

Exit in_child(std::string const& what, std::function<Exit()> const& f) {
  pid_t const child = start_child([&] {
    get_signal_when_parent_ends(SIGKILL);
    auto const code = guarded(f);
    std::fflush(nullptr);
    return code;
  });
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status)) return static_cast<Exit>(WEXITSTATUS(status));
  return fail(Exit::other, fmt::format("{} was killed by signal {} ({})", what, WTERMSIG(status), ::strsignal(WTERMSIG(status))));
}

Trial::Trial(LoadedExperiment& experiment, int threads) {
  process_ = start_child([&, parent = ::getpid()] {
    get_signal_when_parent_ends(SIGTERM);
    close_files();
    return ::getppid() != parent ? Exit::interrupted : guarded([&] { return run_child(experiment, threads); });
  });
}

Trial::~Trial() {
  if (process_ < 0) return;
  signal(SIGTERM);
  ::waitpid(process_, nullptr, 0);
}

std::optional<int> Trial::ended() {
  int status = 0;
  if (process_ < 0 || ::waitpid(process_, &status, WNOHANG) != process_) return std::nullopt;
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Trial::signal(int number) const {
  if (process_ > 0) ::kill(process_, number);
}

void Writer::something_ended() {
  auto const now = std::chrono::steady_clock::now();
  if (now < next_ || (process_ > 0 && ::waitpid(process_, nullptr, WNOHANG) == 0)) return;
  next_ = now + between_tables;
  std::fflush(nullptr);
  process_ = ::fork();
  if (process_ == 0) write_and_exit(write_);
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
