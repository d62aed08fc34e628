#include "experiments/ablation/ablation.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "experiments/ablation/board.hpp"
#include "experiments/ablation/jobs.hpp"
#include "experiments/ablation/results.hpp"
#include "experiments/folder_lock.hpp"
#include "experiments/report/report.hpp"
#include "experiments/signals.hpp"
#include "nn/atomic_file.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

/// The changes of an arm at a point of the tuning grid.
std::vector<Assignment> together(std::vector<Assignment> changes, std::vector<Assignment> const& more) {
  changes.insert(changes.end(), more.begin(), more.end());
  return changes;
}

std::vector<std::string> names_of(std::vector<Arm> const& arms) {
  std::vector<std::string> names;
  for (auto const& arm : arms) names.push_back(arm.name);
  return names;
}

/// One call of `heed run` on an ablation.
class Runner {
 public:
  Runner(Ablation const& ablation, RunOptions const& options) : ablation_(ablation), options_(options), workers_(workers_for(options)) {}

  Exit run() {
    std::vector<std::vector<Assignment>> tuned;
    if (ablation_.tuning) {
      auto const chosen = tune();
      if (!chosen) return stopped();
      tuned = *chosen;
    }
    std::vector<Job> jobs;
    for (auto const seed : ablation_.seeds) {
      for (std::size_t i = 0; i < ablation_.arms.size(); ++i) {
        auto const& arm = ablation_.arms[i];
        jobs.push_back({.arm = i,
                        .seed = seed,
                        .experiment = trial_of(ablation_, arm.name, tuned.empty() ? arm.changes : together(arm.changes, tuned[i]), seed)});
      }
    }
    bool const whole = work(jobs, ablation_.settings.ablation, names_of(ablation_.arms), true);
    auto const page = write_results(ablation_, jobs, tuned);
    if (!whole) return stopped();
    if (!options_.quiet) fmt::print("{}", page);
    write_report(ablation_.folder(), options_.quiet);
    bool const failed = std::ranges::any_of(jobs, [](Job const& job) { return job.state == Job::State::failed; });
    return failed ? Exit::failed : Exit::done;
  }

 private:
  /// For each arm the grid point with the best mean over the tuning seeds; a point with a failed trial is out. Nothing if a signal came.
  std::optional<std::vector<std::vector<Assignment>>> tune() {
    auto const& tuning = *ablation_.tuning;
    std::vector<Job> jobs;
    std::vector<std::string> names;
    for (auto const seed : tuning.seeds) {
      std::size_t row = 0;
      for (auto const& arm : ablation_.arms) {
        for (auto const& point : tuning.points) {
          auto const name = fmt::format("tune-{}-{}", arm.name, point.name);
          if (seed == tuning.seeds.front()) names.push_back(fmt::format("{} {}", arm.name, point.name));
          jobs.push_back({.arm = row++, .seed = seed, .experiment = trial_of(ablation_, name, together(arm.changes, point.changes), seed)});
        }
      }
    }
    if (!work(jobs, ablation_.settings.ablation + ", tuning", names, false)) return std::nullopt;
    std::vector<std::vector<Assignment>> chosen;
    for (std::size_t i = 0; i < ablation_.arms.size(); ++i) chosen.push_back(tuning.points[best_point(jobs, i)].changes);
    return chosen;
  }

  std::size_t best_point(std::vector<Job> const& jobs, std::size_t arm) const {
    std::size_t const points = ablation_.tuning->points.size();
    std::optional<std::pair<double, std::size_t>> best;
    for (std::size_t point = 0; point < points; ++point) {
      double sum = 0;
      for (Job const& job : jobs) {
        if (job.arm == arm * points + point) sum += job.value ? *job.value : std::nan("");
      }
      double const cost = ablation_.settings.higher_is_better() ? -sum : sum;
      if (!std::isnan(cost) && (!best || cost < best->first)) best = {cost, point};
    }
    if (!best) throw Error(fmt::format("tune: no point of the grid trains the arm '{}' to its end", ablation_.arms[arm].name));
    return best->second;
  }

  /// `split`: only the trials of this shard are run here.
  bool work(std::vector<Job>& jobs, std::string const& title, std::vector<std::string> const& names, bool split) {
    for (std::size_t i = 0; split && i < jobs.size(); ++i) {
      bool const mine = static_cast<std::int64_t>(i) % options_.shards == options_.shard - 1;
      if (!mine && !is_finished(jobs[i].folder(), jobs[i].experiment.settings)) jobs[i].state = Job::State::elsewhere;
    }
    Board board(title, names, workers_.jobs, options_.quiet);
    bool const whole =
        run_jobs(jobs, ablation_.settings, workers_, [&](std::vector<Job> const& all, Job const* changed) { board.update(all, changed); });
    board.finish();
    return whole;
  }

  Exit stopped() const {
    if (!options_.quiet) fmt::print(stderr, "{}: every trial is saved; the same command goes on from there\n", ablation_.folder().string());
    return Exit::interrupted;
  }

  Ablation const& ablation_;
  RunOptions const& options_;
  Workers workers_;
};

}  // namespace

Exit run_ablation(RunOptions const& options) {
  Ablation const ablation = load_ablation(options.config, options.overrides, options.places);
  fs::path const folder = ablation.folder();
  if (options.fresh) put_aside(folder);
  FolderLock const lock(folder, fmt::format(".lock-{}-of-{}", options.shard, options.shards));
  write_atomically(folder / "ablation.yaml", ablation.resolved);
  note_signals();
  return Runner(ablation, options).run();
}

Exit check_ablation(RunOptions const& options) {
  Ablation const ablation = load_ablation(options.config, options.overrides, options.places);
  if (options.quiet) return Exit::done;
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
