#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <sys/stat.h>

#include "autograd/registry.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/run/exchange/event_file.hpp"
#include "experiments/run/exchange/result_format.hpp"
#include "experiments/run/record.hpp"

namespace heed {

namespace fs = std::filesystem;

std::string_view kind_of_results(fs::path const& folder) {
  std::error_code unreadable;
  if (fs::is_regular_file(folder / "ablation.yaml", unreadable)) return "ablation";
  return fs::is_regular_file(folder / "metrics.jsonl", unreadable) ? "run" : "";
}

std::vector<fs::path> trials_in(fs::path const& ablation) {
  std::vector<fs::path> trials;
  for (auto const& entry : fs::directory_iterator(ablation)) {
    bool const put_aside = entry.path().filename().string().find(".old-") != std::string::npos;
    if (!put_aside && kind_of_results(entry.path()) == "run") trials.push_back(entry.path());
  }
  std::ranges::sort(trials);
  return trials;
}

namespace {

/// The rows with the times at which they were recorded: time.seconds is of training alone, over all calls, and the last row is as old as
/// the file. Rows without it have the time of the one before.
std::vector<TimedRow> timed_rows(fs::path const& run) {
  auto const rows = read_rows(run);
  struct stat status {};
  ::stat((run / "metrics.jsonl").c_str(), &status);
  double seconds = 0;
  std::vector<TimedRow> timed;
  for (Row const& row : rows) {
    if (double const* const now = row.find("time.seconds")) seconds = *now;
    timed.push_back({seconds, row});
  }
  for (TimedRow& each : timed) each.wall_time += static_cast<double>(status.st_mtime) - seconds;
  return timed;
}

/// The last part of a folder's name, which "." has too.
fs::path last_name(fs::path const& folder) { return fs::canonical(folder).filename(); }

void write(std::vector<fs::path> const& folders, fs::path const& target) {
  std::set<fs::path> names;
  auto const add = [&](fs::path const& run, fs::path const& name) {
    if (!names.insert(name).second) throw ConfigError(run.string(), fmt::format("there are two runs of the name '{}'", name.string()));
    fs::create_directories(target / name);
    write_event_file(target / name, timed_rows(run));
  };
  for (auto const& folder : folders) {
    if (kind_of_results(folder) == "run") add(folder, last_name(folder));
    if (kind_of_results(folder) != "ablation") continue;
    auto const above = folders.size() > 1 ? last_name(folder) : fs::path();
    for (auto const& trial : trials_in(folder)) add(trial, above / trial.filename());
  }
}

Declared<ResultFormat> const declared{{.name = "tensorboard",
                                       .help = "of runs and ablations: a folder of event files for TensorBoard",
                                       .of = {"run", "ablation"},
                                       .several = true,
                                       .folder = true,
                                       .write = write}};

}  // namespace

}  // namespace heed
