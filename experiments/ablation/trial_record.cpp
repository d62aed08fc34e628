#include <algorithm>
#include <cstring>
#include <deque>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "experiments/ablation/jobs.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/program/system.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

/// The last lines of a log; none if it cannot be read: the log only explains a failure, which is reported without it too.
std::vector<std::string> last_lines(fs::path const& file, std::size_t count) try {
  std::deque<std::string> lines;
  std::istringstream in(read_file(file));
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
    if (lines.size() > count) lines.pop_front();
  }
  return {lines.begin(), lines.end()};
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
