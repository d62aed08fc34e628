#include "experiments/ablation/jobs.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <signal.h>

#include "experiments/ablation/child.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/program/system.hpp"
#include "experiments/train/session.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Running {
  Job* job;
  std::unique_ptr<Trial> trial;
  Clock::time_point began;
};

class JobScheduler {
 public:
  JobScheduler(std::vector<Job>& jobs, AblationSettings const& settings, Workers const& workers, Watcher const& watch)
      : jobs_(jobs), settings_(settings), workers_(workers), watch_(watch) {}

  void look_once() {
    for (Job& job : jobs_) {
      if (job.is_settled() || read_outcome(job)) {
        if (job.state == Job::State::done && job.seconds == 0) job.seconds = seconds_of(job);
        continue;
      }
      auto const holder = holder_of(job.folder());
      job.state = holder ? Job::State::elsewhere : Job::State::waiting;
      job.host = holder ? holder->host : "";
      note_share(job);
    }
  }

  bool run() {
    for (Job& job : jobs_)
      if (!job.is_settled()) read_outcome(job);
    while (true) {
      bool const stops = is_stopped() || full_;
      if (!stops) start();
      if (stops ? running_.empty() : settled()) break;
      std::this_thread::sleep_for(20ms);
      if (is_stopped() && !asked_) {
        asked_ = true;
        for (auto const& each : running_) each.trial->signal(SIGTERM);
      }
      collect();
      poll();
    }
    for (Job& job : jobs_)  // jobs that other processes have ended since the last look
      if (job.state == Job::State::waiting || job.state == Job::State::elsewhere) read_outcome(job);
    if (full_ && !settled())
      throw Error("a trial failed because there is no space left on the disk: no further one is begun; the same command goes on");
    return settled() || !is_stopped();
  }

 private:
  bool is_stopped() const { return interrupted() || (workers_.until && Clock::now() >= *workers_.until); }
  bool settled() const { return std::ranges::all_of(jobs_, &Job::is_settled); }

  /// Sets a job's end from its folder; false if it records none. A folder that cannot be read is a failure of this job only.
  bool read_outcome(Job& job) try {
    if (is_finished(job.folder(), job.experiment.settings)) {
      finish(job);
    } else if (auto const failure = failure_of(job.folder())) {
      fail(job, *failure);
    } else {
      return false;
    }
    return true;
  } catch (FileError const& error) {
    fail(job, {error.what(), {}});
    return true;
  }

  void start() {
    for (Job& job : jobs_) {
      if (running_.size() >= static_cast<std::size_t>(workers_.jobs)) return;
      if (job.state == Job::State::waiting) start(job);
    }
  }

  /// Starts a job, unless another process holds it or has ended it in the meantime. Of processes that start it at once, one trains it.
  void start(Job& job) {
    if (read_outcome(job)) return;
    if (holder_of(job.folder())) {
      job.state = Job::State::elsewhere;
      return;
    }
    job.state = Job::State::running;
    running_.push_back({&job, std::make_unique<Trial>(job.experiment, static_cast<int>(workers_.threads)), Clock::now()});
    watch_(jobs_, &job);
  }

  void collect() {
    std::erase_if(running_, [&](Running const& each) {
      auto const code = each.trial->ended();
      each.job->seconds = seconds_since(each.began);
      if (code) end(*each.job, *code);
      return code.has_value();
    });
  }

  void end(Job& job, int code) {
    if (code == static_cast<int>(Trial::elsewhere)) {
      job.state = Job::State::elsewhere;
    } else if (code == static_cast<int>(Exit::interrupted)) {
      job.state = Job::State::waiting;  // its checkpoint is saved; the next call resumes it
      if (interrupted()) record_interruption(job.folder(), stop_reason());
    } else if (!read_outcome(job)) {  // killed, before it could record a failure
      auto const lock = FolderLock::attempt(job.folder());
      if (!lock)
        job.state = Job::State::elsewhere;
      else if (!read_outcome(job))
        fail(job, recorded(job, code));
    }
  }

  /// Why a trial failed. Without space on the disk for that either, it is known here alone.
  Failure recorded(Job const& job, int code) {
    Failure failure;
    try {
      failure = record_failure(job.folder(), code);
    } catch (Error const& error) {
      failure.message = error.what();
      if (failure.message.find(std::strerror(ENOSPC)) == std::string::npos) throw;
    }
    full_ = full_ || failure.message.find(std::strerror(ENOSPC)) != std::string::npos;
    return failure;
  }

  void finish(Job& job) {
    job.history = std::make_shared<History const>(read_history(job.folder()));
    job.value = heed::metric_value(*job.history, settings_, kept_step(job.folder()));
    if (!job.value) {
      auto const names = mapped(*job.history, [](auto const& each) { return each.first; });
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

  /// Four times a second, updates the progress of running jobs; of other processes' jobs less often the more there are: all ask one server.
  void poll() {
    if (Clock::now() < next_) return;
    next_ = Clock::now() + 250ms;
    bool const look = Clock::now() >= next_look_;
    if (look) next_look_ = Clock::now() + 250ms + 50ms * std::ranges::count(jobs_, Job::State::elsewhere, &Job::state);
    for (Job& job : jobs_) {
      bool const elsewhere = job.state == Job::State::elsewhere;
      if (elsewhere && look && !read_outcome(job) && !holder_of(job.folder())) job.state = Job::State::waiting;
      if (job.state == Job::State::running || (elsewhere && look)) note_share(job);
    }
    watch_(jobs_, nullptr);
  }

  static void note_share(Job& job) {
    auto const step = last_step(job.folder());
    auto const steps = job.experiment.settings.train.steps;
    if (step && steps > 0) job.share = std::min(1.0, static_cast<double>(*step + 1) / static_cast<double>(steps));
  }

  /// Seconds of training that a finished trial has recorded; 0 if none.
  static double seconds_of(Job const& job) {
    auto const summary = find_json(job.folder() / "summary.json");
    return summary ? real_at(*summary, "time.seconds").value_or(0) : 0;
  }

  std::vector<Job>& jobs_;
  AblationSettings const& settings_;
  Workers const& workers_;
  Watcher const& watch_;
  std::vector<Running> running_;
  Clock::time_point next_ = Clock::now(), next_look_ = Clock::now();
  bool asked_ = false;
  bool full_ = false;  ///< the disk
};

Watcher const nobody = [](std::vector<Job> const&, Job const*) {};

}  // namespace

bool any_failed(std::vector<Job> const& jobs) { return std::ranges::count(jobs, Job::State::failed, &Job::state) > 0; }

Workers workers_for(RunOptions const& options) {
  Workers workers{.threads = options.threads.value_or(1)};
  if (options.within)
    workers.until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*options.within));
  workers.jobs = options.jobs.value_or(std::max<Index>(1, std::thread::hardware_concurrency() / workers.threads));
  return workers;
}

void look_at(std::vector<Job>& jobs, AblationSettings const& settings) { JobScheduler(jobs, settings, {}, nobody).look_once(); }

bool run_jobs(std::vector<Job>& jobs, AblationSettings const& settings, Workers const& workers, Watcher const& watch) {
  return JobScheduler(jobs, settings, workers, watch).run();
}

std::optional<double> metric_value(History const& history, AblationSettings const& settings, std::optional<Index> kept) {
  auto const found = history.find(settings.metric);
  if (found == history.end()) return std::nullopt;
  auto const& series = found->second;
  if (settings.at == "last") {
    auto const at = std::ranges::find(series, kept.value_or(-1), &std::pair<Index, double>::first);
    return at != series.end() ? at->second : series.back().second;
  }
  auto const worse = [&](auto const& a, auto const& b) {  // a NaN is worse than any number
    if (std::isnan(a.second) || std::isnan(b.second)) return std::isnan(a.second) && !std::isnan(b.second);
    return settings.higher_is_better() ? a.second < b.second : a.second > b.second;
  };
  return std::ranges::max_element(series, worse)->second;
}

std::optional<double> compared_value(Job const& job, AblationSettings const& settings) {
  double const worst = settings.higher_is_better() ? -INFINITY : INFINITY;
  if (job.state == Job::State::failed && job.failure.diverged) return worst;
  if (job.state != Job::State::done) return std::nullopt;
  return std::isnan(*job.value) ? worst : *job.value;
}

// ---------------------------------------------------------------- failures and timeouts on record

namespace {

/// The last lines of a log; none if it cannot be read: the log only explains a failure, which is reported without it too.
std::vector<std::string> last_lines(fs::path const& file, std::size_t count) try {
  std::vector<std::string> lines;
  std::istringstream in(read_file(file));
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
    if (lines.size() > count) lines.erase(lines.begin());
  }
  return lines;
} catch (FileError const&) {
  return {};
}

bool is_divergence(int code) { return code == static_cast<int>(Exit::failed); }

/// Whether a retry would certainly fail again: the trial diverged, and its failure was recorded after the program was built.
bool would_come_again(fs::path const& record) try {
  std::error_code unknown;
  auto const made = fs::last_write_time(program_file(), unknown);
  if (unknown || fs::last_write_time(record, unknown) < made || unknown) return false;
  auto const failure = failure_of(record.parent_path());
  return failure && failure->diverged;
} catch (FileError const&) {  // the record cannot be read
  return false;
}

/// Why metrics.jsonl of a finished trial is not the file that the trial finished with; nothing if it is, or if the trial is not finished.
std::optional<std::string> damage_of(fs::path const& trial) try {
  auto const summary = find_json(trial / "summary.json");
  if (summary && summary->is_object() && summary->value("finished", false)) check_written(trial, "metrics.jsonl");
  return std::nullopt;
} catch (FileError const& error) {
  return error.what();
} catch (nlohmann::json::exception const&) {  // values of other types: not a trial's summary
  return std::nullopt;
}

}  // namespace

std::optional<Failure> failure_of(fs::path const& folder) {
  auto const record = find_json(folder / "failure.json");
  if (!record) return std::nullopt;
  try {
    return Failure{record->value("message", ""), record->value("log", std::vector<std::string>{}), is_divergence(record->value("code", 0))};
  } catch (nlohmann::json::exception const&) {  // values of other types
    return std::nullopt;
  }
}

Failure record_failure(fs::path const& folder, int code) {
  constexpr std::size_t enough = 8;
  Failure failure{{}, last_lines(folder / "log.txt", enough), is_divergence(code)};
  std::string const prefix = "heed: ";
  if (code > 128)
    failure.message = fmt::format("killed by signal {} ({})", code - 128, ::strsignal(code - 128));
  else if (!failure.log.empty() && failure.log.back().starts_with(prefix))
    failure.message = failure.log.back().substr(prefix.size());
  else
    failure.message = fmt::format("ended with exit code {}", code);
  write_atomically(folder / "failure.json",
                   json_text(nlohmann::json{{"message", failure.message}, {"code", code}, {"log", failure.log}}, 2) + "\n");
  return failure;
}

void forget_failures(fs::path const& ablation) {
  std::vector<fs::path> records;
  for (auto const& entry : fs::recursive_directory_iterator(ablation))
    if (entry.path().filename() == "failure.json" && !would_come_again(entry.path())) records.push_back(entry.path());
  for (auto const& record : records) fs::remove(record);
}

void put_damaged_aside(fs::path const& ablation) {
  std::vector<fs::path> trials;
  for (auto const& entry : fs::directory_iterator(ablation))
    if (entry.is_directory() && entry.path().filename().string().find(".old-") == std::string::npos) trials.push_back(entry.path());
  std::ranges::sort(trials);
  for (auto const& trial : trials) {
    auto const damage = damage_of(trial);
    if (!damage) continue;
    auto const target = free_name_beside(trial);
    put_aside(trial);
    fmt::print(stderr, "heed: {}; the trial is moved aside as {}, and trained again where it is needed\n", *damage,
               target.filename().string());
  }
}

std::string timed_out_trials(fs::path const& ablation) {
  constexpr Index many = 3;
  std::set<std::string> lines;
  std::error_code gone;
  for (auto const& entry : fs::directory_iterator(ablation, gone)) {
    auto const [preempted, timed_out] = interruptions_of(entry.path());
    if (timed_out >= many)
      lines.insert(fmt::format("{} timed out {} times: it goes on from its checkpoint, but needs more time than a job is given{}\n",
                               entry.path().filename().string(), timed_out,
                               preempted > 0 ? fmt::format(" (preempted {} times besides)", preempted) : ""));
  }
  return fmt::format("{}", fmt::join(lines, ""));
}

}  // namespace heed
