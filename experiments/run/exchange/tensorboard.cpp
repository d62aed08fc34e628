#include <cmath>
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

namespace {

/// The rows with estimated times of recording. time.seconds counts training only, over all calls; the last row gets the file's modification
/// time. A row without time.seconds gets the time of the row before.
std::vector<TimedRow> timed_rows(fs::path const& run) {
  auto const rows = read_rows(run);
  struct stat status {};
  ::stat((run / "metrics.jsonl").c_str(), &status);
  double seconds = 0;
  std::vector<TimedRow> timed;
  for (Row const& row : rows) {
    if (double const* const now = row.find("time.seconds"); now != nullptr && std::isfinite(*now)) seconds = *now;
    timed.push_back({seconds, row});
  }
  for (TimedRow& each : timed) each.wall_time += static_cast<double>(status.st_mtime) - seconds;
  return timed;
}

/// The name of a folder, also for the path ".".
fs::path last_name(fs::path const& folder) { return fs::canonical(folder).filename(); }

void write_tensorboard(std::vector<fs::path> const& folders, fs::path const& target) {
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

Declared<ResultFormat> const tensorboard_format{{.name = "tensorboard",
                                                 .help = "a folder of event files for TensorBoard",
                                                 .of = {"run", "ablation"},
                                                 .several = true,
                                                 .folder = true,
                                                 .write = write_tensorboard}};

}  // namespace

}  // namespace heed
