#include "experiments/ablation/arm_check.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/ablation/child.hpp"
#include "experiments/ablation/trials_read.hpp"
#include "experiments/ablation/tuning.hpp"
#include "experiments/run/failure.hpp"
#include "experiments/run/train.hpp"
#include "nn/files/checkpoint.hpp"

namespace heed {

namespace {

/// Calls f; what it throws gets words at its end.
template <class F>
void with_words(std::string const& words, F f) {
  try {
    f();
  } catch (ConfigError const& error) {
    throw ConfigError(error.what() + words);
  } catch (FileError const& error) {
    throw FileError(error.what() + words);
  } catch (Error const& error) {
    throw Error(error.what() + words);
  }
}

/// Adds what the trials that were begun have read. Whether all are finished: of an arm that was tuned, at one point for each seed.
bool add_begun(Ablation const& ablation, TrialsRead& read) {
  auto const add = [&](LoadedExperiment const& trial) {
    read.add(trial);
    return is_finished(folder_of(trial), trial.settings);
  };
  bool all = true;
  for (Job const& job : tuning_trials(ablation).jobs) all = add(job.experiment) && all;
  auto const points = ablation.tuning ? ablation.tuning->points : std::vector<Arm>(1);
  for (auto const& arm : ablation.arms) {
    for (auto const seed : ablation.seeds) {
      bool any = false;
      for (auto const& point : points) any = add(trial_of(ablation, arm.name, joined(arm.changes, point.changes), seed)) || any;
      all = all && any;
    }
  }
  return all;
}

/// Throws FolderError if trials have read, or would read, something else than others.
void refuse_mixture(Ablation const& ablation, TrialsRead const& read) {
  if (auto const differences = read.differences(); !differences.empty())
    throw FolderError(
        fmt::format("{}: its trials would have read different contents of a file: {} (put the file back, or --fresh begins anew)",
                    ablation.folder().string(), differences));
}

}  // namespace

std::vector<std::string> check_arms(Ablation const& ablation, bool quiet, bool fresh) {
  std::vector<std::string> remarks;
  TrialsRead read;
  // What arms that have begun would read now is known if nothing is left to train, or if all files are where they were read.
  bool const known = !fresh && (add_begun(ablation, read) || read.hold_against_files());
  refuse_mixture(ablation, read);
  for (auto const& arm : ablation.arms) {
    auto const trial = first_trial(ablation, arm);
    if (known && has_checkpoint(folder_of(trial))) continue;
    with_words(fmt::format(" (arm '{}')", arm.name), [&] {
      Trainer const trainer(trial, quiet);
      read.add(trial, trainer.files_read(), "now");
      auto const remark = trainer.remark();
      if (remark && std::ranges::find(remarks, *remark) == remarks.end()) remarks.push_back(*remark);
    });
  }
  refuse_mixture(ablation, read);
  return remarks;
}

Exit arms_checked(Ablation const& ablation, bool quiet, bool fresh) {
  std::fflush(nullptr);
  pid_t const child = ::fork();
  if (child < 0) throw Error(fmt::format("no process can be started: {}", std::strerror(errno)));
  if (child == 0) {
    get_signal_when_parent_ends(SIGKILL);
    auto const code = guarded([&] {
      for (auto const& remark : check_arms(ablation, quiet, fresh))
        if (!quiet) fmt::print(stderr, "{}\n", remark);
      return Exit::done;
    });
    std::fflush(nullptr);
    ::_exit(static_cast<int>(code));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status)) return static_cast<Exit>(WEXITSTATUS(status));
  return fail(Exit::other,
              fmt::format("the check of the arms was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status))));
}

}  // namespace heed
