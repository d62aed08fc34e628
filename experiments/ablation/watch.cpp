#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "experiments/ablation/ablation.hpp"
#include "experiments/ablation/board.hpp"
#include "experiments/ablation/tuning.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/table.hpp"
#include "experiments/program/signals.hpp"
#include "experiments/program/system.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

using State = Job::State;

namespace {

fs::path ablation_at(fs::path const& folder, Folders const& folders) {
  for (fs::path const& each : {folder, folders.output / folder})
    if (is_file(each / "ablation.yaml")) return each;
  throw ConfigError(
      "watch", fmt::format("'{}' is no ablation's folder, nor is there one of this name in {}", folder.string(), folders.output.string()));
}

/// The trials of an ablation's current stage: tuning, until all its trials have ended, then the comparison.
class Sweep {
 public:
  explicit Sweep(Ablation ablation) : ablation_(std::move(ablation)) { trials_.tuned = tuning_trials(ablation_); }

  void look() { trials_.look(ablation_); }
  std::vector<Job> const& jobs() const { return is_tuning() ? trials_.tuned.jobs : trials_.jobs; }
  std::string title() const { return ablation_.settings.ablation + (is_tuning() ? ", tuning" : ""); }
  std::vector<std::string> names() const { return is_tuning() ? trials_.tuned.names : names_of(ablation_.arms); }
  /// Whether all trials have ended.
  bool is_over() const { return !is_tuning() && std::ranges::all_of(trials_.jobs, &Job::is_settled); }
  bool has_failures() const { return any_failed(trials_.jobs) || any_failed(trials_.tuned.jobs); }
  double left() const {
    auto const working = std::ranges::count(jobs(), State::elsewhere, &Job::state);
    return working == 0 ? -1 : seconds_left(jobs(), working);
  }

 private:
  bool is_tuning() const { return !std::ranges::all_of(trials_.tuned.jobs, &Job::is_settled); }

  Ablation ablation_;
  AblationTrials trials_;
};

/// A host: the number of trials it trains, and seconds since the last row of the one that has written none for longest; nothing before
/// their first rows. Clocks of machines may differ: negative if the last row comes from this machine's future.
struct Host {
  std::size_t trials = 0;
  std::optional<double> silent;
};

std::string text_of_hosts(std::vector<Job> const& jobs) {
  std::map<std::string, Host> hosts;
  for (Job const& job : jobs) {
    if (job.state != State::elsewhere) continue;
    Host& host = hosts[job.host];
    ++host.trials;
    std::error_code none;
    auto const row = fs::last_write_time(job.folder() / "metrics.jsonl", none);
    if (none) continue;
    double const silent = std::chrono::duration<double>(fs::file_time_type::clock::now() - row).count();
    host.silent = std::max(host.silent.value_or(silent), silent);
  }
  TableRows rows{{"host", "trials", "last row"}};
  for (auto const& [name, host] : hosts) {
    std::string const last = !host.silent       ? "none yet"
                             : *host.silent < 0 ? "unknown: the clocks differ"
                                                : clock_time(*host.silent) + " ago";
    rows.push_back({name, fmt::format("{}", host.trials), last});
  }
  return rows.size() == 1 ? "\nnobody is training now: heed run on the ablation's file goes on\n" : "\n" + table(rows);
}

}  // namespace

Exit watch_ablation(WatchOptions const& options) {
  fs::path const folder = ablation_at(options.folder, options.folders);
  Sweep sweep(ablation_in(folder, {}, options.folders));
  note_signals();
  Board board(sweep.title(), sweep.names(), 1, options.once);
  int idle = 0;  // looks in a row at which nobody trained
  while (true) {
    sweep.look();
    idle = std::ranges::count(sweep.jobs(), State::elsewhere, &Job::state) == 0 ? idle + 1 : 0;
    auto const text = board_page(sweep.title(), sweep.names(), sweep.jobs(), sweep.left(), options.once ? 1000 : terminal_width(),
                                 options.once ? 10'000 : terminal_height()) +
                      (sweep.is_over() ? "" : text_of_hosts(sweep.jobs())) + timed_out_trials(folder);
    if (options.once || sweep.is_over() || (idle > 1 && !(on_terminal() && isatty(STDOUT_FILENO)))) {
      board.finish();
      fmt::print("{}", text);
      return sweep.has_failures() ? Exit::failed : Exit::done;
    }
    board.show(text);
    for (Index tenth = 0; tenth < 10 * options.every; ++tenth) {
      if (interrupted()) return Exit::interrupted;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

}  // namespace heed
