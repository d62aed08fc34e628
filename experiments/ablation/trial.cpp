#include "experiments/ablation/trial.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "autograd/parallel.hpp"
#include "experiments/ablation/child.hpp"
#include "experiments/ablation/trial_record.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/train/session.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

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
int run_child(LoadedExperiment& experiment, fs::path const& folder, int threads) {
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  redirect(folder / "log.txt");
  auto const lock = FolderLock::attempt(folder);
  if (!lock) return Trial::elsewhere;
  if (is_finished(folder, experiment.settings) || failure_of(folder)) return static_cast<int>(Exit::done);
  set_threads(threads);
  auto const code = static_cast<int>(guarded([&] { return train(experiment, false, *lock); }));
  std::fflush(nullptr);
  if (code != static_cast<int>(Exit::done) && code != static_cast<int>(Exit::interrupted))
    guarded([&] {
      record_failure(folder, code);
      return Exit::done;
    });
  return code;
}

}  // namespace

Trial::Trial(LoadedExperiment& experiment, int threads) {
  std::fflush(nullptr);
  pid_t const parent = ::getpid();
  process_ = ::fork();
  if (process_ < 0) throw Error(fmt::format("no process can be started: {}", std::strerror(errno)));
  if (process_ != 0) return;
  get_signal_when_parent_ends(SIGTERM);
  close_files();
  int code = static_cast<int>(Exit::interrupted);
  if (::getppid() == parent) {
    auto const failure = guarded([&] {
      code = run_child(experiment, folder_of(experiment), threads);
      return Exit::done;
    });
    if (failure != Exit::done) code = static_cast<int>(failure);
  }
  ::_exit(code);
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

}  // namespace heed
