#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "autograd/parallel.hpp"
#include "experiments/ablation/ablation.hpp"
#include "experiments/ablation/jobs.hpp"
#include "experiments/ablation/tuning.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/run/failure.hpp"
#include "experiments/run/train.hpp"
#include "experiments/text/table.hpp"
#include "experiments/text/terminal.hpp"

namespace heed {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// How long the parts of a trial take, in seconds.
struct Cost {
  double start = 0, step = 0, evaluation = 0;

  double of(TrainSettings const& train) const {
    auto const evaluations = static_cast<double>((train.steps + train.evaluate.every - 1) / train.evaluate.every + 1);
    return start + static_cast<double>(train.steps) * step + evaluations * evaluation;
  }
};

/// A few steps, the fastest of which counts, and one evaluation.
Cost measured(LoadedExperiment const& experiment) {
  Cost cost;
  auto const start = Clock::now();
  Trainer trainer(experiment, true);
  cost.start = seconds_since(start);
  cost.step = 1e9;
  for (auto const began = Clock::now(); !trainer.finished() && (trainer.step() < 3 || seconds_since(began) < 0.3);) {
    Row row;
    auto const before = Clock::now();
    trainer.train_step(row);
    cost.step = std::min(cost.step, seconds_since(before));
  }
  Row row;
  auto const before = Clock::now();
  trainer.evaluate(row);
  cost.evaluation = seconds_since(before);
  return cost;
}

/// The same in a process of its own, as trials are run. Nothing if the arm cannot be trained: the child has said why, and `exit` is its
/// code.
std::optional<Cost> probe(LoadedExperiment const& experiment, int threads, Exit& exit) {
  int ends[2];
  if (::pipe(ends) != 0) throw Error(fmt::format("no pipe can be made: {}", std::strerror(errno)));
  std::fflush(nullptr);
  pid_t const child = ::fork();
  if (child < 0) throw Error(fmt::format("no process can be started: {}", std::strerror(errno)));
  if (child == 0) {
    set_threads(threads);
    auto const code = guarded([&] {
      Cost const cost = measured(experiment);
      return ::write(ends[1], &cost, sizeof cost) == sizeof cost ? Exit::done : Exit::other;
    });
    ::_exit(static_cast<int>(code));
  }
  ::close(ends[1]);
  Cost cost;
  bool const whole = ::read(ends[0], &cost, sizeof cost) == sizeof cost;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (whole) return cost;
  exit = WIFEXITED(status) && WEXITSTATUS(status) != 0 ? static_cast<Exit>(WEXITSTATUS(status)) : Exit::other;
  return std::nullopt;
}

/// How many trials of each arm are done: of tuning, and of the comparison where tuning has come to a choice.
std::vector<std::size_t> finished_trials(Ablation const& ablation) {
  std::vector<std::size_t> finished(ablation.arms.size());
  auto tuned = tuning_trials(ablation);
  note_ended(tuned.jobs, ablation.settings);
  for (std::size_t arm = 0; ablation.tuning && arm < finished.size(); ++arm) {
    bool ended = true;
    for (std::size_t point = 0; point < ablation.tuning->points.size(); ++point) {
      for (Job const* const job : trials_at(ablation, tuned, arm, point)) {
        finished[arm] += job->state == Job::State::done ? 1 : 0;
        ended = ended && (job->state == Job::State::done || job->state == Job::State::failed);
      }
    }
    tuned.chosen.push_back(ended ? best_point(ablation, tuned, arm) : std::nullopt);
  }
  auto jobs = comparison_trials(ablation, tuned);
  note_ended(jobs, ablation.settings);
  for (Job const& job : jobs) finished[job.arm] += job.state == Job::State::done ? 1 : 0;
  return finished;
}

/// What so many paired seeds can show.
std::string power_of(std::size_t seeds) {
  std::string text = fmt::format("{} paired seeds: the smallest p of the sign-flip test is {:.3g}", seeds, smallest_p(seeds));
  if (auto const effect = detectable_effect(seeds))
    return text +
           fmt::format("; a difference of {:.2f} standard deviations (of paired differences) is found four times out of five\n", *effect);
  std::size_t enough = seeds;
  while (smallest_p(enough) > 0.05) ++enough;
  return text + fmt::format("\nwarning: they cannot show any difference at p ≤ 0.05; {} seeds can (seeds={})\n", enough, enough);
}

}  // namespace

Exit plan_ablation(RunOptions const& options) {
  if (!is_ablation(load(options.config)))
    throw ConfigError(options.config.string(), "describes one run, no ablation: heed check prints it, heed run trains it");
  Ablation const ablation = load_ablation(options.config, options.overrides, options.places);
  Workers const workers = workers_for(options);
  std::vector<std::vector<std::string>> rows{{"arm", "runs", "done", "s/step", "s/run"}};
  double seconds = 0;
  std::size_t runs = 0, done = 0;
  Exit exit = Exit::done;
  auto const finished_by_arm = finished_trials(ablation);
  std::size_t const tuning = ablation.tuning ? ablation.tuning->points.size() * ablation.tuning->seeds.size() : 0;
  for (std::size_t i = 0; i < ablation.arms.size(); ++i) {
    auto const& arm = ablation.arms[i];
    auto const trial = trial_of(ablation, arm.name, arm.changes, ablation.seeds.front());
    auto const cost = probe(trial, static_cast<int>(workers.threads), exit);
    std::size_t const finished = finished_by_arm[i], count = ablation.seeds.size() + tuning;
    runs += count;
    done += finished;
    double const each = cost ? cost->of(trial.settings.train) : 0;
    seconds += each * static_cast<double>(count - finished);
    rows.push_back({arm.name, fmt::format("{}", count), finished > 0 ? fmt::format("{}", finished) : "",
                    cost ? fmt::format("{:.4f}", cost->step) : "cannot be trained", cost ? fmt::format("{:.1f}", each) : ""});
  }
  fmt::print("{}: {} arms, {} runs{}, {} at a time with {} thread{} each\n\n{}\n", ablation.folder().string(), ablation.arms.size(), runs,
             done > 0 ? fmt::format(" ({} done already)", done) : "", workers.jobs, workers.threads, workers.threads == 1 ? "" : "s",
             table(rows));
  if (exit == Exit::done)
    fmt::print("about {} (measured on this machine just now)\n", clock_time(seconds / static_cast<double>(workers.jobs)));
  else
    fmt::print("no time is told: heed run trains nothing of an ablation with an arm that cannot be trained\n");
  fmt::print("{}", power_of(ablation.seeds.size()));
  return exit;
}

}  // namespace heed
