#include "experiments/ablation/ablation.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/ablation/board.hpp"
#include "experiments/ablation/child.hpp"
#include "experiments/ablation/jobs.hpp"
#include "experiments/ablation/results.hpp"
#include "experiments/ablation/trials_read.hpp"
#include "experiments/ablation/tuning.hpp"
#include "experiments/ablation/watch.hpp"
#include "experiments/config/table.hpp"
#include "experiments/report/report.hpp"
#include "experiments/run/failure.hpp"
#include "experiments/run/folder.hpp"
#include "experiments/run/result_file.hpp"
#include "experiments/run/signals.hpp"
#include "experiments/run/train.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/checkpoint.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

/// Calls f; appends words to the message of what it throws.
template <class F>
void with_error_suffix(std::string const& words, F f) {
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

/// Adds the files that started trials have read. Returns whether all are finished: for a tuned arm, at one point for each seed.
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

/// Throws FolderError if trials have read, or would read, different content.
void refuse_mixture(Ablation const& ablation, TrialsRead const& read) {
  if (auto const differences = read.differences(); !differences.empty())
    throw FolderError(
        fmt::format("{}: its trials would have read different contents of a file: {} (put the file back, or --fresh begins anew)",
                    ablation.folder().string(), differences));
}

/// Builds data, model and optimizer of every arm that has not begun to train in the ablation's folder (`fresh`: of every arm), so that what
/// an arm lacks on this machine (data, memory) is reported before the others are trained. Returns the distinct Trainer::remark()s. Throws
/// as Trainer does, with the arm's name, and FolderError if trials have read different content, or other content than is there now
/// (TrialsRead).
std::vector<std::string> check_arms(Ablation const& ablation, bool quiet, bool fresh = false) {
  std::vector<std::string> remarks;
  TrialsRead read;
  // What arms that have begun would read now is known if nothing is left to train, or if all files are where they were read.
  bool const known = !fresh && (add_begun(ablation, read) || read.hold_against_files());
  refuse_mixture(ablation, read);
  for (auto const& arm : ablation.arms) {
    auto const trial = first_trial(ablation, arm);
    if (known && has_checkpoint(folder_of(trial))) continue;
    with_error_suffix(fmt::format(" (arm '{}')", arm.name), [&] {
      Trainer trainer(trial, quiet);
      check_arm(ablation, arm, trainer);
      read.add(trial, trainer.files_read(), "now");
      auto const remark = trainer.remark();
      if (remark && std::ranges::find(remarks, *remark) == remarks.end()) remarks.push_back(*remark);
    });
  }
  refuse_mixture(ablation, read);
  return remarks;
}

/// The same in a child process, as is necessary before trials are started; prints the remarks unless quiet. Returns the exit code.
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

std::vector<std::string> names_of(std::vector<Arm> const& arms) {
  std::vector<std::string> names;
  for (auto const& arm : arms) names.push_back(arm.name);
  return names;
}

FolderError other_version(fs::path const& folder) {
  return FolderError(fmt::format(
      "{}: another process is running another version of this ablation here (see {}); wait for its end, or give another name or --output",
      folder.string(), (folder / "ablation.yaml").string()));
}

/// Waits until no other process begins in the folder, and then shares it with those that train there.
FolderLock shared_lock(fs::path const& folder) {
  constexpr std::chrono::seconds a_while{10};
  while (true) {
    auto lock = FolderLock::wait(folder, ".lock", a_while, FolderLock::LockMode::shared);
    if (lock) return std::move(*lock);
    auto const holder = holder_of(folder);
    fmt::print(stderr, "{}: waiting for {}, which has this folder alone\n", folder.string(), holder ? holder->text() : "another process");
  }
}

/// Locks the ablation's folder together with the other processes that train there. Who finds none writes ablation.yaml and retries failed
/// trials first. Throws FolderError if others work on another configuration.
FolderLock join(Ablation const& ablation) {
  fs::path const folder = ablation.folder(), file = folder / "ablation.yaml";
  auto lock = FolderLock::attempt(folder);
  if (lock) {
    remove_parts(folder);
    write_atomically(file, ablation.resolved);
    forget_failures(folder);
    put_damaged_aside(folder);
    lock->share();
  } else {
    lock = shared_lock(folder);
  }
  if (read_if_there(file) != ablation.resolved) throw other_version(folder);
  return std::move(*lock);
}

/// One call of `heed run` on an ablation.
class Runner {
 public:
  Runner(Ablation const& ablation, RunOptions const& options) : ablation_(ablation), options_(options), workers_(workers_for(options)) {}

  Exit run() {
    Writer writer([&] {  // one process at a time is enough
      if (auto const writing = FolderLock::attempt(ablation_.folder(), ".tables.lock")) {
        write_results(ablation_, jobs_, tuned_);
        write_report(ablation_.folder(), true);
      }
    });
    writer_ = &writer;
    bool const whole = (!ablation_.tuning || tune()) && compare();
    writer.wait();
    // Without a lock: processes that end at the same time write the same tables, each file as a whole, and one that is stopped is not
    // waited for.
    auto const page = write_results(ablation_, jobs_, tuned_);
    if (!whole) return stopped();
    if (!options_.quiet) fmt::print("{}", page);
    write_report(ablation_.folder(), options_.quiet);
    print_leftovers();
    return any_failed(jobs_) || any_failed(tuned_.jobs) ? Exit::failed : Exit::done;
  }

 private:
  static bool any_failed(std::vector<Job> const& jobs) {
    return std::ranges::any_of(jobs, [](Job const& job) { return job.state == Job::State::failed; });
  }

  /// Every arm that can be trained with every seed. False if not all have ended.
  bool compare() {
    jobs_ = comparison_trials(ablation_, tuned_);
    return work(jobs_, ablation_.settings.ablation, names_of(ablation_.arms));
  }

  /// For each arm the grid point with the best mean over the tuning seeds; a point with a failed trial is out. Every process that takes
  /// part waits for all of these trials, and so comes to the same choice. False if not all have ended.
  bool tune() {
    tuned_ = tuning_trials(ablation_);
    if (!work(tuned_.jobs, ablation_.settings.ablation + ", tuning", tuned_.names)) return false;
    choose(ablation_, tuned_);
    return true;
  }

  /// Prints which trials timed out, or failed before.
  void print_leftovers() const {
    if (options_.quiet) return;
    fmt::print("{}", indented(timed_out_trials(ablation_.folder())));
    if (failed_before_ > 0)
      fmt::print("  {} not trained again: the result would be the same (--fresh begins anew)\n", counted(failed_before_, "failed trial"));
  }

  static std::string counted(std::size_t count, char const* what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

  bool work(std::vector<Job>& jobs, std::string const& title, std::vector<std::string> const& names) {
    failed_before_ +=
        static_cast<std::size_t>(std::ranges::count_if(jobs, [](Job const& job) { return fs::exists(job.folder() / "failure.json"); }));
    Board board(title, names, workers_.jobs, options_.quiet);
    bool const whole = run_jobs(jobs, ablation_.settings, workers_, [&](std::vector<Job> const& all, Job const* changed) {
      board.update(all, changed);
      if (changed != nullptr && changed->state == Job::State::done) writer_->something_ended();
    });
    board.finish();
    return whole;
  }

  Exit stopped() const {
    std::fputs(timed_out_trials(ablation_.folder()).c_str(), stderr);
    auto const text = fmt::format("{}: every trial is saved; the same command resumes\n", ablation_.folder().string());
    if (!options_.quiet) std::fputs(text.c_str(), stderr);  // which does not throw where the terminal is gone
    return Exit::interrupted;
  }

  Ablation const& ablation_;
  RunOptions const& options_;
  Workers workers_;
  Writer* writer_ = nullptr;
  TuningResult tuned_;
  std::vector<Job> jobs_;
  std::size_t failed_before_ = 0;  ///< trials whose failure was recorded before this call
};

/// Whether the tables are those that the summary was written with.
bool tables_are_whole(fs::path const& folder) try {
  for (auto const& file : files_written(folder)) check_written(folder, file);
  return true;
} catch (FileError const&) {
  return false;
}

}  // namespace

void check_arm(Ablation const& ablation, Arm const& arm, Trainer& trainer) {
  trainer.require_metric(ablation.metric_place, ablation.settings.metric);
  for (auto const& [key, words] : trainer.unexpected_changes())
    for (auto const& own : arm.changes)
      if (is_within(key, own.key) || is_within(own.key, key))
        throw ConfigError(
            fmt::format("{} in the model whose weights init.from takes, and is another function of them (if that is meant: "
                        "init.changed: [{}])",
                        words, key));
}

Exit run_ablation(RunOptions const& options) {
  Ablation const ablation = load_ablation(options.config, options.overrides, options.folders);
  if (auto const exit = arms_checked(ablation, options.quiet, options.fresh); exit != Exit::done) return exit;
  if (options.fresh) put_aside(ablation.folder());
  FolderLock const joined = join(ablation);
  note_signals();
  return Runner(ablation, options).run();
}

void renew_results(fs::path const& folder, Folders const& folders) {
  if (!fs::is_regular_file(folder / "ablation.yaml")) return;
  auto const summary = find_json(folder / "summary.json");
  bool const tables = summary && summary->is_object();
  auto const count = [&](char const* key) { return tables && summary->contains(key) ? (*summary)[key] : Json(nullptr); };
  if (tables && count("trials_done") == count("trials_of") && tables_are_whole(folder)) return;
  Ablation ablation;
  try {
    ablation = ablation_in(folder, {}, folders);
  } catch (ConfigError const&) {
    if (tables) return;
    throw;
  }
  AblationTrials trials;
  trials.look(ablation);
  write_results(ablation, trials.jobs, trials.tuned);
}

Exit check_ablation(RunOptions const& options) {
  Ablation const ablation = load_ablation(options.config, options.overrides, options.folders);
  auto const remarks = check_arms(ablation, true);
  if (options.quiet) return Exit::done;
  for (auto const& remark : remarks) fmt::print(stderr, "{}\n", remark);
  auto base = trial_of(ablation, "base", {}, ablation.seeds.front());
  fmt::print("{}\n# base: {}\n", ablation.resolved, ablation.base.file.lexically_normal().string());
  base.settings.name = "base";
  auto const text = emit(base.settings);
  for (std::size_t i = 0, end = 0; i < text.size(); i = end + 1) {
    end = text.find('\n', i);
    fmt::print("#   {}\n", text.substr(i, end - i));
  }
  fmt::print("# {} arms: {}\n# {} runs in {}\n", ablation.arms.size(), fmt::join(names_of(ablation.arms), ", "),
             ablation.arms.size() * ablation.seeds.size(), ablation.folder().string());
  return Exit::done;
}

}  // namespace heed
