#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "experiments/ablation/ablation.hpp"
#include "experiments/ablation/tuning.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/table.hpp"
#include "experiments/program/system.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

namespace {

using State = Job::State;

std::string cell(Job const& job) {
  if (job.state == State::waiting) return "·";
  if (job.state == State::done) return short_number(*job.value, 4);
  if (job.state == State::failed) return "failed";
  if (job.state == State::other_shard || job.state == State::spared) return "–";
  auto const share = fmt::format("{:.0f} %", 100 * job.share);
  return job.state == State::running ? share : share + (job.host.empty() ? " elsewhere" : " on " + job.host);
}

/// The line of counts: "attention: 12/36 runs, 4 running, 3:20 left".
std::string counts_of(std::string const& title, std::vector<Job> const& jobs, double left) {
  auto const count = [&](State state) { return std::ranges::count(jobs, state, &Job::state); };
  auto const total = static_cast<std::ptrdiff_t>(jobs.size()) - count(State::other_shard) - count(State::spared);
  std::string line = fmt::format("{}: {}/{} runs", title, count(State::done), total);
  if (auto const running = count(State::running)) line += fmt::format(", {} running", running);
  if (auto const elsewhere = count(State::elsewhere)) line += fmt::format(", {} in other processes", elsewhere);
  if (auto const failed = count(State::failed)) line += fmt::format(", {} failed", failed);
  if (left >= 0 && count(State::done) < total) line += fmt::format(", {} left", clock_time(left));
  return line;
}

}  // namespace

double seconds_left(std::vector<Job> const& jobs, Index at_a_time) {
  std::map<std::size_t, std::pair<double, double>> by_arm;  // seconds and count
  double seconds = 0, known = 0;
  for (Job const& job : jobs) {
    if (job.state != State::done || job.seconds <= 0) continue;
    by_arm[job.arm].first += job.seconds;
    by_arm[job.arm].second += 1;
    seconds += job.seconds;
    known += 1;
  }
  double left = 0, longest = 0;
  for (Job const& job : jobs) {
    if (job.is_settled()) continue;
    auto const same = by_arm.find(job.arm);
    double expected = same != by_arm.end() ? same->second.first / same->second.second : known > 0 ? seconds / known : -1;
    if (job.state == State::running && job.share > 0.05) expected = job.seconds / job.share;
    if (expected < 0) return -1;
    double const rest = expected * (1 - job.share);
    left += rest;
    longest = std::max(longest, rest);
  }
  return std::max(longest, left / static_cast<double>(at_a_time));
}

std::string board_page(std::string const& title, std::vector<std::string> const& arms, std::vector<Job> const& jobs, double left,
                       std::size_t width, std::size_t height) {
  std::string const line = counts_of(title, jobs, left);
  TableRows rows{{""}};
  for (auto const& arm : arms) rows.push_back({arm});
  for (Job const& job : jobs) {
    auto& row = rows.at(job.arm + 1);
    row.push_back(cell(job));
    if (row.size() > rows.front().size()) rows.front().push_back(fmt::format("seed {}", job.seed));
  }
  auto const page = line + "\n" + table(rows);
  std::size_t widest = 0, lines = 0;
  std::istringstream in(page);
  for (std::string each; std::getline(in, each); ++lines) widest = std::max(widest, columns(each));
  return widest < width && lines < height ? page : cut(line, width > 0 ? width - 1 : 0) + "\n";
}

Board::Board(std::string title, std::vector<std::string> arms, Index at_a_time, bool quiet)
    : title_(std::move(title)), arms_(std::move(arms)), at_a_time_(at_a_time), quiet_(quiet), terminal_(on_terminal()) {}

Board::~Board() { finish(); }

void Board::update(std::vector<Job> const& jobs, Job const* changed) {
  if (quiet_) return;
  erase();
  if (changed != nullptr) say(jobs, *changed);
  if (terminal_) show(board_page(title_, arms_, jobs, seconds_left(jobs, at_a_time_), terminal_width(), terminal_height()));
}

void Board::say(std::vector<Job> const& jobs, Job const& changed) {
  auto const who = fmt::format("{}, seed {}", arms_.at(changed.arm), changed.seed);
  std::string text;
  if (changed.state == State::failed) {
    text = fmt::format("{}: {} failed: {}\n", title_, who, changed.failure.message);
    for (auto const& line : changed.failure.log) text += fmt::format("    {}\n", line);
    text += fmt::format("    (complete log: {}; {})\n", (changed.folder() / "log.txt").string(),
                        changed.failure.diverged ? "the same program would give the same result" : "the next call retries it");
  } else if (changed.state == State::done && !terminal_ && changed.seconds > 0) {
    text = fmt::format("{}  ({}: {} in {:.1f} s)\n", counts_of(title_, jobs, seconds_left(jobs, at_a_time_)), who,
                       short_number(*changed.value, 4), changed.seconds);
  }
  std::fputs(text.c_str(), stderr);
}

void Board::show(std::string const& text) {
  if (quiet_) return;
  erase();
  std::string const line = text.substr(0, text.find('\n') + 1);
  if (!terminal_ && line == last_line_) return;
  last_line_ = line;
  if (terminal_) lines_ = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  std::fputs((terminal_ ? text : line).c_str(), stderr);
}

void Board::erase() {
  if (lines_ > 0) std::fputs(fmt::format("\x1b[{}F\x1b[J", lines_).c_str(), stderr);
  lines_ = 0;
}

void Board::finish() {
  erase();
  std::fflush(stderr);
}

// ---------------------------------------------------------------- heed watch

namespace {

fs::path ablation_at(fs::path const& folder, Folders const& folders) {
  for (fs::path const& each : {folder, folders.output / folder})
    if (is_file(each / "ablation.yaml")) return each;
  throw ConfigError(
      "watch", fmt::format("'{}' is no ablation's folder, nor is there one of this name in {}", folder.string(), folders.output.string()));
}

/// The hosts that train, each with its trials and the age of the last row of the one that has written none for longest.
std::string text_of_hosts(std::vector<Job> const& jobs) {
  std::map<std::string, std::pair<std::size_t, std::optional<double>>> hosts;  // trials; seconds, nothing before their first rows
  for (Job const& job : jobs) {
    if (job.state != State::elsewhere) continue;
    auto& [trials, age] = hosts[job.host];
    ++trials;
    std::error_code none;
    auto const row = fs::last_write_time(job.folder() / "metrics.jsonl", none);
    if (none) continue;
    double const silent = std::chrono::duration<double>(fs::file_time_type::clock::now() - row).count();
    age = std::max(age.value_or(silent), silent);
  }
  TableRows rows{{"host", "trials", "last row"}};
  for (auto const& [name, host] : hosts) {
    auto const& [trials, age] = host;
    auto const last = !age ? "none yet" : *age < 0 ? "unknown: the clocks differ" : clock_time(*age) + " ago";
    rows.push_back({name, fmt::format("{}", trials), last});
  }
  return rows.size() == 1 ? "\nnobody is training now: heed run on the ablation's file goes on\n" : "\n" + table(rows);
}

}  // namespace

Exit watch_ablation(WatchOptions const& options) {
  fs::path const folder = ablation_at(options.folder, options.folders);
  Ablation const ablation = ablation_in(folder, {}, options.folders);
  note_signals();
  Board board("", {}, 1, options.once);
  AblationTrials trials;
  int idle = 0;  // looks in a row at which nobody trained
  while (true) {
    trials.look(ablation);
    auto const& [tuned, comparison] = trials;
    bool const tunes = !std::ranges::all_of(tuned.jobs, &Job::is_settled);
    auto const& jobs = tunes ? tuned.jobs : comparison;
    bool const over = std::ranges::all_of(jobs, &Job::is_settled);
    auto const working = std::ranges::count(jobs, State::elsewhere, &Job::state);
    idle = working == 0 ? idle + 1 : 0;
    auto const text = board_page(ablation.settings.ablation + (tunes ? ", tuning" : ""), tunes ? tuned.names : names_of(ablation.arms),
                                 jobs, working == 0 ? -1 : seconds_left(jobs, working), options.once ? 1000 : terminal_width(),
                                 options.once ? 10'000 : terminal_height()) +
                      (over ? "" : text_of_hosts(jobs)) + timed_out_trials(folder);
    if (options.once || over || (idle > 1 && !(on_terminal() && isatty(STDOUT_FILENO)))) {
      board.finish();
      fmt::print("{}", text);
      return any_failed(comparison) || any_failed(tuned.jobs) ? Exit::failed : Exit::done;
    }
    board.show(text);
    for (Index tenth = 0; tenth < 10 * options.every; ++tenth) {
      if (interrupted()) return Exit::interrupted;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

}  // namespace heed
