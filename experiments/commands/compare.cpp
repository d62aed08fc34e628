#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/commands/commands.hpp"
#include "experiments/config/table.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/program/command.hpp"
#include "experiments/report/ablation_result.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

namespace {

using NamedValues = std::vector<std::pair<std::string, std::string>>;

struct Compared {
  std::string name;
  std::string arm;  ///< of an ablation; empty for a single run
  fs::path folder;
  NamedValues keys, files;  ///< of its configuration; what it read, with the beginnings of their hashes
  History history;
};

/// The last `count` names of a path.
std::string last_names(fs::path const& path, std::size_t count) {
  std::vector<fs::path> const names(path.begin(), path.end());
  fs::path last;
  for (auto const& name : std::span(names).last(std::min(count, names.size()))) last /= name;
  return last.string();
}

/// Names each run by the last parts of its path: as few parts as make all names different.
void name_apart(std::vector<Compared>& runs) {
  for (std::size_t count = 1;; ++count) {
    std::set<std::string> names, folders;
    for (auto& run : runs) {
      if (!run.arm.empty()) run.name = last_names(run.folder.parent_path(), count) + "/" + run.arm;
      if (run.arm.empty()) run.name = last_names(run.folder, count);
      names.insert(run.name);
      folders.insert(run.folder.string());
    }
    if (names.size() == folders.size() || count > 100) return;
  }
}

Compared opened(fs::path const& folder, std::string const& arm) {
  check_written(folder, "config.yaml");
  Compared run{
      .name = {}, .arm = arm, .folder = folder, .keys = flatten(load_kept(folder).root), .files = {}, .history = read_history(folder)};
  for (auto const& [of, file] : files_read_in(folder)) run.files.emplace_back("content of " + of, file.sha256.substr(0, 12) + "…");
  return run;
}

std::vector<ArmResult> arms_of(nlohmann::ordered_json const& summary, fs::path const& file) try {
  return ablation_result_of(summary).arms;
} catch (std::exception const& error) {
  throw FileError(fmt::format("{}: is no summary of an ablation: {}", file.string(), error.what()));
}

/// Appends a run, or each arm of an ablation with its first seed.
void open_all(fs::path const& run, Folders const& folders, std::vector<Compared>& runs) {
  fs::path folder = fs::absolute(find_run(run, folders)).lexically_normal();
  if (!fs::is_directory(folder) || !folder.has_filename()) folder = folder.parent_path();
  auto const found = find_json(folder / "summary.json");
  bool const tables = found && found->is_object() && found->contains("ablation");
  if (!tables && !is_there(folder / "ablation.yaml")) {
    runs.push_back(opened(folder, ""));
    return;
  }
  auto const summary = tables ? *found : read_json(folder / "summary.json");
  for (auto const& arm : arms_of(summary, folder / "summary.json")) {
    if (arm.folders.empty()) continue;
    fs::path const trial = folder / arm.folders.front();
    if (!is_there(trial))
      throw FileError(
          fmt::format("{}: names the trial {}, which is not there", (folder / "summary.json").string(), trial.filename().string()));
    runs.push_back(opened(trial, arm.name));
  }
}

/// One row for each name whose value differs between runs, in order of appearance.
TableRows differing(std::vector<Compared> const& runs, NamedValues Compared::*part) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> values;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (auto const& [key, value] : runs[i].*part) {
      auto& row = values[key];
      if (row.empty()) order.push_back(key);
      row.resize(runs.size());
      row[i] = value;
    }
  }
  TableRows rows;
  for (auto const& key : order) {
    auto const& row = values[key];
    if (key == "name" || std::ranges::all_of(row, [&](auto const& value) { return value == row.front(); })) continue;
    rows.push_back({key});
    for (auto const& value : row) rows.back().push_back(value.empty() ? "–" : value);
  }
  return rows;
}

/// A curve of at most `width` values as ▇▅▃▂▁, scaled from `lowest` to `highest`; × for a value that is not finite.
std::string curve(std::vector<std::pair<Index, double>> const& series, double lowest, double highest, std::size_t width) {
  static char const* const blocks[]{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string line;
  auto const count = std::min(width, series.size());
  for (std::size_t i = 0; i < count; ++i) {
    double const value = series[i * series.size() / count].second;
    double const share = highest > lowest ? (value / 2 - lowest / 2) / (highest / 2 - lowest / 2) : 0;  // halved: no overflow
    line += std::isfinite(value) ? blocks[static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * 7.999)] : "×";
  }
  return line;
}

/// One line per run: first, best and last value, and the curve.
std::string curves(std::vector<Compared> const& runs, std::string const& metric) {
  double lowest = std::numeric_limits<double>::infinity(), highest = -lowest;
  for (auto const& run : runs) {
    if (!run.history.contains(metric)) continue;
    for (auto const& [step, value] : run.history.at(metric))
      if (std::isfinite(value)) lowest = std::min(lowest, value), highest = std::max(highest, value);
  }
  auto const* const info = find_metric(metric);
  bool const higher = info != nullptr && info->better == Better::higher;
  TableRows rows{{with_unit(metric), "first", higher ? "highest" : "lowest", "last", "at step", ""}};
  for (auto const& run : runs) {
    auto const found = run.history.find(metric);
    if (found == run.history.end()) continue;
    auto const& series = found->second;
    double best = std::nan("");
    for (auto const& [step, value] : series)
      if (std::isnan(best) || (higher ? value > best : value < best)) best = value;
    rows.push_back({run.name, short_number(series.front().second, 4), short_number(best, 4), short_number(series.back().second, 4),
                    fmt::format("{}", series.back().first), curve(series, lowest, highest, 40)});
  }
  return table(rows);
}

struct CompareOptions {
  std::vector<std::filesystem::path> runs;
  Folders folders;
};

void declare_compare(CLI::App& app, CompareOptions& options) {
  add_arguments(app, "RUN", "folders of runs and ablations, or their names in the output folder", options.runs);
}

Declared<Command> const compare_command{{.order = 14,
                                         .name = "compare",
                                         .usage = "RUN …",
                                         .help = "compare runs: keys that differ, learning curves, final values",
                                         .footer = "For an ablation, its arms are compared, each with its first seed.\n\nexamples:\n  "
                                                   "heed compare runs/shakespeare runs/shakespeare-2\n  heed compare runs/positions",
                                         .add = with_options<CompareOptions>(declare_compare, [](CompareOptions const& options) {
                                           return compare_runs(options.runs, options.folders, std::cout);
                                         })}};

}  // namespace

Exit compare_runs(std::vector<fs::path> const& names, Folders const& folders, std::ostream& out) {
  std::vector<Compared> runs;
  for (auto const& name : names) open_all(name, folders, runs);
  if (runs.size() < 2) throw ConfigError("compare", "there is only one run: give two or more, or an ablation of several arms");
  name_apart(runs);
  auto rows = differing(runs, &Compared::keys), files = differing(runs, &Compared::files);
  bool const equal = rows.empty();
  std::ranges::sort(files);
  rows.insert(rows.end(), files.begin(), files.end());
  if (equal) out << "the configurations are equal" << (rows.empty() ? "" : ", but the files that were read are not:") << "\n\n";
  if (!rows.empty()) {
    std::vector<std::string> head{"key"};
    for (auto const& run : runs) head.push_back(run.name);
    rows.insert(rows.begin(), head);
    out << table(rows) << '\n';
  }
  std::set<std::string> metrics;
  for (auto const& run : runs) {
    for (auto const& [metric, series] : run.history) {
      if (metric == "loss" || MetricKey::of(metric).is_held_out()) metrics.insert(metric);
    }
  }
  for (auto const& metric : metrics) out << curves(runs, metric) << '\n';
  if (metrics.contains("validation.lost_answers"))
    out << "answers that model.context cuts off count in no loss: losses of runs that lose different answers cannot be compared\n";
  return Exit::done;
}

}  // namespace heed
