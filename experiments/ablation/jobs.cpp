#include "experiments/ablation/jobs.hpp"

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <signal.h>

#include "experiments/ablation/history.hpp"
#include "experiments/signals.hpp"

namespace heed {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A job that is running.
struct Running {
  Job* job;
  Trial trial;
  Clock::time_point began;
};

class Crew {
 public:
  Crew(std::vector<Job>& jobs, AblationSettings const& settings, Workers const& workers, Watcher const& watch)
      : jobs_(jobs), settings_(settings), workers_(workers), watch_(watch) {}

  bool run() {
    for (Job& job : jobs_) {
      if (job.state == Job::State::waiting && is_finished(job.folder(), job.experiment.settings)) finish(job);
    }
    while (true) {
      if (!interrupted()) start();
      if (running_.empty()) break;
      std::this_thread::sleep_for(20ms);
      if (interrupted() && !asked_) {
        asked_ = true;
        for (auto const& each : running_) each.trial.signal(SIGTERM);
      }
      collect();
      look();
    }
    return !interrupted();
  }

 private:
  void start() {
    for (Job& job : jobs_) {
      if (running_.size() >= static_cast<std::size_t>(workers_.jobs)) return;
      if (job.state != Job::State::waiting) continue;
      job.state = Job::State::running;
      running_.push_back({&job, Trial(job.experiment, static_cast<int>(workers_.threads)), Clock::now()});
      watch_(jobs_, &job);
    }
  }

  void collect() {
    for (std::size_t i = 0; i < running_.size();) {
      auto& [job, trial, began] = running_[i];
      auto const code = trial.ended();
      job->seconds = std::chrono::duration<double>(Clock::now() - began).count();
      if (!code) {
        ++i;
        continue;
      }
      Job& ended = *job;
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      if (is_finished(ended.folder(), ended.experiment.settings)) {
        finish(ended);
      } else if (*code == static_cast<int>(Exit::interrupted)) {
        ended.state = Job::State::waiting;  // saved; for the next call
      } else {
        fail(ended, record_failure(ended.folder(), *code));
      }
    }
  }

  void finish(Job& job) {
    auto const history = read_history(job.folder());
    job.value = heed::value_of(history, settings_);
    if (!job.value) {
      std::vector<std::string> names;
      for (auto const& [name, series] : history) names.push_back(name);
      return fail(job, {fmt::format("its metrics hold no '{}' (there are {})", settings_.metric, fmt::join(names, ", ")), {}});
    }
    job.state = Job::State::done;
    job.share = 1;
    watch_(jobs_, &job);
  }

  void fail(Job& job, Failure failure) {
    job.state = Job::State::failed;
    job.failure = std::move(failure);
    watch_(jobs_, &job);
  }

  /// How far the running ones are, now and then.
  void look() {
    if (Clock::now() < next_) return;
    next_ = Clock::now() + 250ms;
    for (auto const& each : running_) {
      auto const step = last_step(each.job->folder());
      auto const steps = each.job->experiment.settings.train.steps;
      if (step && steps > 0) each.job->share = std::min(1.0, static_cast<double>(*step + 1) / static_cast<double>(steps));
    }
    watch_(jobs_, nullptr);
  }

  std::vector<Job>& jobs_;
  AblationSettings const& settings_;
  Workers const& workers_;
  Watcher const& watch_;
  std::vector<Running> running_;
  Clock::time_point next_ = Clock::now();
  bool asked_ = false;
};

}  // namespace

Workers workers_for(RunOptions const& options) {
  Workers workers;
  workers.threads = options.threads.value_or(1);
  std::int64_t const cores = std::max(1U, std::thread::hardware_concurrency());
  workers.jobs = options.jobs.value_or(std::max<std::int64_t>(1, cores / workers.threads));
  return workers;
}

bool run_jobs(std::vector<Job>& jobs, AblationSettings const& settings, Workers const& workers, Watcher const& watch) {
  return Crew(jobs, settings, workers, watch).run();
}

}  // namespace heed
