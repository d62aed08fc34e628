// `heed export … --format csv`: a run's rows, or an ablation's trials, as one table.

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "autograd/registry.hpp"
#include "experiments/ablation/results.hpp"
#include "experiments/exchange/formats.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/report/material.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace {

struct TrialRow {
  ArmResult const* arm = nullptr;
  Index seed = 0;
  std::string state = "missing", folder, message;
  std::optional<Index> steps;
  std::optional<double> value, best;      ///< of the ablation's metric: the value that is compared, and the best
  std::map<std::string, double> metrics;  ///< last value of each metric
};

/// The seed in the name of a trial's folder, "ARM-seedK-HASH".
std::optional<Index> seed_of(std::string const& folder) {
  auto const at = folder.rfind("-seed"), end = folder.rfind('-');
  if (at == folder.npos || end <= at) return std::nullopt;
  return parsed_number<Index>(std::string_view(folder).substr(at + 5, end - at - 5));
}

/// Reads the last values of metrics.jsonl. Those in the summary, which belong to the weights that the run has kept, take precedence.
void read_metrics(fs::path const& run, AblationResult const& result, TrialRow& trial) {
  if (kind_of_results(run) != "run") return;  // it ended before its first row
  auto const rows = read_rows(run);
  for (Row const& row : rows) {
    trial.steps = row.step;
    for (auto const& [name, value] : row.values) trial.metrics[name] = value;
    double const* const value = row.find(result.metric);
    if (value == nullptr || std::isnan(*value)) continue;
    bool const better = !trial.best || (result.better == "higher" ? *value > *trial.best : *value < *trial.best);
    if (better) trial.best = *value;
  }
  auto const summary = find_json(run / "summary.json");
  if (!summary || !summary->is_object()) return;
  for (auto& [name, value] : trial.metrics)
    if (auto const found = summary->find(name); found != summary->end()) value = number_of(*found);
}

std::vector<TrialRow> trials_of(Material const& ablation) {
  std::vector<TrialRow> trials;
  for (auto const& arm : ablation.arms) {
    for (Index const seed : ablation.seeds) {
      auto& trial = trials.emplace_back();
      trial.arm = &arm;
      trial.seed = seed;
      auto const done = std::ranges::find_if(arm.folders, [&](std::string const& folder) { return seed_of(folder) == seed; });
      auto const failed = std::ranges::find_if(ablation.failures,
                                               [&](FailedTrial const& failure) { return failure.arm == arm.name && failure.seed == seed; });
      if (done != arm.folders.end()) trial.state = "done", trial.folder = *done;
      if (failed != ablation.failures.end()) trial.state = "failed", trial.folder = failed->folder, trial.message = failed->message;
      if (std::ranges::find(arm.diverged, seed) != arm.diverged.end()) trial.state = "diverged";
      if (auto const value = arm.values.find(seed); value != arm.values.end()) trial.value = value->second;
      if (!trial.folder.empty()) read_metrics(ablation.folder / trial.folder, ablation, trial);
    }
  }
  return trials;
}

/// The keys that arms set or tuning selected; varied keys first.
std::vector<std::string> keys_of_arms(AblationResult const& result) {
  auto keys = result.varied;
  for (auto const& arm : result.arms)
    for (auto const* const list : {&arm.keys, &arm.tuned})
      for (auto const& [key, value] : *list)
        if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  return keys;
}

std::string trials_table(fs::path const& folder) {
  Material const ablation = read_material(folder);
  auto const trials = trials_of(ablation);
  auto const keys = keys_of_arms(ablation);
  std::set<std::string> metrics;
  for (auto const& trial : trials)
    for (auto const& metric : trial.metrics) metrics.insert(metric.first);
  std::vector<std::string> head{"arm", "seed"};
  head.insert(head.end(), keys.begin(), keys.end());
  head.insert(head.end(), {"state", "steps", "value", "best"});
  head.insert(head.end(), metrics.begin(), metrics.end());
  head.insert(head.end(), {"folder", "message"});
  std::string text = csv_line(head);
  for (auto const& trial : trials) {
    std::vector<std::string> line{trial.arm->name, std::to_string(trial.seed)};
    for (auto const& key : keys) line.push_back(value_in(*trial.arm, key));
    line.insert(line.end(),
                {trial.state, trial.steps ? std::to_string(*trial.steps) : "", csv_number(trial.value), csv_number(trial.best)});
    for (auto const& metric : metrics) {
      auto const found = trial.metrics.find(metric);
      line.push_back(found == trial.metrics.end() ? "" : csv_number(found->second));
    }
    line.insert(line.end(), {trial.folder, trial.message});
    text += csv_line(line);
  }
  return text;
}

void write_csv(std::vector<fs::path> const& folders, fs::path const& target) {
  auto const& folder = folders.front();
  write_atomically(target, kind_of_results(folder) == "run" ? csv_of(read_rows(folder)) : trials_table(folder));
}

Declared<ResultFormat> const csv_format{{.name = "csv",
                                         .help = "a CSV file with a line per step, or per trial: keys, state, final metrics",
                                         .of = {"run", "ablation"},
                                         .write = write_csv}};

}  // namespace

}  // namespace heed
