#include "experiments/ablation/ablation.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/ablation/check_arms.hpp"
#include "experiments/ablation/child.hpp"
#include "experiments/ablation/jobs.hpp"
#include "experiments/ablation/results.hpp"
#include "experiments/ablation/tuning.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/table.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/program/system.hpp"
#include "experiments/report/report.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

namespace {

/// Waits until no other process begins in the folder, and then shares it with those that train there.
FolderLock shared_lock(fs::path const& folder) {
  constexpr std::chrono::seconds a_while{10};
  while (true) {
    auto lock = FolderLock::attempt(folder, ".lock", FolderLock::LockMode::shared, a_while);
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
    forget_failures(ablation.trials_folder());
    put_damaged_aside(ablation.trials_folder());
    lock->share();
  } else {
    lock = shared_lock(folder);
  }
  if (read_if_there(file) != ablation.resolved)
    throw FolderError(fmt::format(
        "{}: another process is running another version of this ablation here (see {}); wait for its end, or give another name or --output",
        folder.string(), file.string()));
  return std::move(*lock);
}

/// One call of `heed run` on an ablation.
class Runner {
 public:
  Runner(Ablation const& ablation, RunOptions const& options) : ablation_(ablation), options_(options), workers_(workers_for(options)) {}

  Exit run(bool prints) {
    Writer writer([&] {  // one process at a time is enough
      if (auto const writing = FolderLock::attempt(ablation_.folder(), ".tables.lock")) {
        write_results(ablation_, jobs_, tuned_);
        write_report(ablation_.folder(), true);
      }
    });
    writer_ = &writer;
    bool const whole = (!ablation_.tuning || tune()) && compare();
    writer.wait();
    // Without a lock: processes that end together write the same tables, each file whole, and one that is stopped is not waited for.
    auto const page = write_results(ablation_, jobs_, tuned_);
    if (!whole && interrupted()) return stopped();
    prints = prints && !options_.quiet;
    if (prints) fmt::print("{}", page);
    write_report(ablation_.folder(), !prints, false);
    if (prints) print_leftovers();
    return any_failed(jobs_) || any_failed(tuned_.jobs) ? Exit::failed : Exit::done;
  }

 private:
  /// Every arm that can be trained with every seed. False if not all have ended.
  bool compare() {
    jobs_ = comparison_trials(ablation_, tuned_);
    note_failed(jobs_);
    auto const& settings = ablation_.settings;
    if (!settings.by_evidence()) return work(jobs_, settings.ablation, names_of(ablation_.arms));
    look_at(jobs_, settings);
    while (give_out_seeds(ablation_, jobs_, workers_.jobs).open)
      if (!work(jobs_, settings.ablation, names_of(ablation_.arms))) return false;
    return true;
  }

  /// For each arm the grid point with the best mean over the tuning seeds; a point with a failed trial is out. Every process that takes
  /// part waits for all of these trials, and so comes to the same choice. False if not all have ended.
  bool tune() {
    tuned_ = tuning_trials(ablation_);
    note_failed(tuned_.jobs);
    if (!work(tuned_.jobs, ablation_.settings.ablation + ", tuning", tuned_.names)) return false;
    choose(ablation_, tuned_);
    return true;
  }

  void print_leftovers() const {
    fmt::print("{}", indented(timed_out_trials(ablation_.trials_folder())));
    if (failed_before_ > 0)
      fmt::print("  {} not trained again: the result would be the same (--fresh begins anew)\n", plural(failed_before_, "failed trial"));
  }

  void note_failed(std::vector<Job> const& jobs) {
    failed_before_ +=
        static_cast<std::size_t>(std::ranges::count_if(jobs, [](Job const& job) { return fs::exists(job.folder() / "failure.json"); }));
  }

  bool work(std::vector<Job>& jobs, std::string const& title, std::vector<std::string> const& names) {
    Board board(title, names, workers_.jobs, options_.quiet);
    return run_jobs(jobs, ablation_.settings, workers_, [&](std::vector<Job> const& all, Job const* changed) {
      board.update(all, changed);
      if (changed != nullptr && changed->state == Job::State::done) writer_->something_ended();
    });
  }

  Exit stopped() const {
    std::fputs(timed_out_trials(ablation_.trials_folder()).c_str(), stderr);
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

}  // namespace

Exit run_ablation(Ablation const& ablation, RunOptions const& options, bool prints) {
  Exit const checked = in_child("the check of the arms", [&] {  // trials start from a process that has computed nothing
    for (auto const& remark : check_arms(ablation, options.quiet, options.fresh))
      if (!options.quiet) fmt::print(stderr, "{}\n", remark);
    return Exit::done;
  });
  if (checked != Exit::done) return checked;
  if (options.fresh && ablation.settings.trials)
    throw ConfigError(
        "--fresh", fmt::format("the trials in {} are other ablations', too: move them aside yourself", ablation.trials_folder().string()));
  if (options.fresh) put_registered_aside(ablation.folder(), ablation.folder());
  FolderLock const joined = join(ablation);
  if (ablation.settings.claim.given()) register_claim(ablation.folder(), ablation.settings.claim, registration_of(ablation));
  note_signals();
  return Runner(ablation, options).run(prints);
}

Exit check_ablation(Ablation const& ablation, bool quiet) {
  auto const remarks = check_arms(ablation, true);
  if (quiet) return Exit::done;
  for (auto const& remark : remarks) fmt::print(stderr, "{}\n", remark);
  auto base = trial_of(ablation, "base", {}, ablation.seeds.front());
  fmt::print("{}\n# base: {}\n", ablation.resolved, ablation.base.file.lexically_normal().string());
  base.settings.name = "base";
  auto text = emit(base.settings);
  text.pop_back();  // the last line end
  replace_all(text, "\n", "\n#   ");
  fmt::print("#   {}\n", text);
  fmt::print("# {} arms: {}\n# {} runs in {}\n", ablation.arms.size(), fmt::join(names_of(ablation.arms), ", "), ablation.trials_in_shard(),
             ablation.folder().string());
  return Exit::done;
}

}  // namespace heed
