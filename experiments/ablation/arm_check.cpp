#include "experiments/ablation/arm_check.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/ablation/child.hpp"
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

}  // namespace

std::vector<std::string> check_arms(Ablation const& ablation, bool quiet) {
  std::vector<std::string> remarks;
  for (auto const& arm : ablation.arms) {
    auto const trial = first_trial(ablation, arm);
    if (has_checkpoint(trial.places.output / trial.settings.name)) continue;
    with_words(fmt::format(" (arm '{}')", arm.name), [&] {
      auto const remark = Trainer(trial, quiet).remark();
      if (remark && std::ranges::find(remarks, *remark) == remarks.end()) remarks.push_back(*remark);
    });
  }
  return remarks;
}

Exit arms_checked(Ablation const& ablation, bool quiet) {
  std::fflush(nullptr);
  pid_t const child = ::fork();
  if (child < 0) throw Error(fmt::format("no process can be started: {}", std::strerror(errno)));
  if (child == 0) {
    get_signal_when_parent_ends(SIGKILL);
    auto const code = guarded([&] {
      for (auto const& remark : check_arms(ablation, quiet))
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
