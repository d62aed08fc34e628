#include "experiments/ablation/results.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/folder/csv.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/metric/info.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/npz.hpp"

namespace heed {

using Json = nlohmann::ordered_json;
using State = Job::State;

namespace {

using Jobs = std::vector<Job const*>;

// ---------------------------------------------------------------- results.csv

/// One row a number: arm, varied keys, keys that were tuned, with what was chosen, seed, step, metric, value.
void write_curves(Ablation const& ablation, AblationResult const& result, std::vector<Jobs> const& done) {
  AtomicFile file(ablation.folder() / "results.csv");
  auto keys = ablation.varied;
  if (ablation.tuning)
    for (auto const& change : ablation.tuning->points.front().changes)
      if (std::ranges::find(keys, change.key) == keys.end()) keys.push_back(change.key);
  std::string head = "arm";
  for (auto const& key : keys) head += "," + csv_field(key);
  file.write(head + ",seed,step,metric,value\n");
  for (std::size_t i = 0; i < done.size(); ++i) {
    std::string start = csv_field(result.arms[i].name);
    for (auto const& key : keys) start += "," + csv_field(value_in(result.arms[i], key));
    for (Job const* job : done[i]) {
      std::string text;
      for (auto const& [metric, series] : *job->history) {
        std::size_t const first = MetricKey::of(metric).is_cost() ? series.size() - 1 : 0;
        for (std::size_t at = first; at < series.size(); ++at)
          text += fmt::format("{},{},{},{},{}\n", start, job->seed, series[at].first, csv_field(metric), series[at].second);
      }
      file.write(text);
    }
  }
  file.commit();
}

// ---------------------------------------------------------------- probes.npz

/// The values that a probe recorded for a head, a layer (head −1), or the model (layer −1 too).
struct Recorded {
  std::vector<Index> steps;    ///< of the first seed
  std::vector<double> values;  ///< seed after seed
  bool alike = true;           ///< all seeds were probed at these steps
};
using RecordedByHead = std::map<std::pair<Index, Index>, Recorded>;

/// By probe, as its metrics' names are without layer and head; those of layers as NAME.layers where there is one of the model too.
std::map<std::string, RecordedByHead> probes_of(Jobs const& jobs) {
  std::map<std::string, RecordedByHead> all;
  for (Job const* job : jobs) {
    for (auto const& [metric, series] : *job->history) {
      auto key = MetricKey::of(metric);
      if (!key.is_probe()) continue;
      RecordedByHead::key_type head{-1, -1};
      if (key.statistic.empty()) head = {std::exchange(key.layer, -1), std::exchange(key.head, -1)};
      std::string name = key.text();
      if (head.first >= 0 && head.second < 0 && job->history->contains(name)) name += ".layers";
      auto& [steps, values, alike] = all[name][head];
      if (steps.empty()) std::ranges::transform(series, std::back_inserter(steps), [](auto const& row) { return row.first; });
      alike = alike && std::ranges::equal(steps, series, {}, {}, [](auto const& row) { return row.first; });
      for (auto const& [step, value] : series) values.push_back(value);
    }
  }
  return all;
}

/// [seeds, steps(, layers(, heads))], NaN where there is no such head. Nothing if seeds or heads were probed at different steps.
std::optional<Tensor> array_of(RecordedByHead const& by_head, Index seeds) {
  auto const steps = std::ssize(by_head.begin()->second.steps);
  Index layers = 0, heads = 0;
  for (auto const& [head, recorded] : by_head) {
    if (!recorded.alike || std::ssize(recorded.values) != seeds * steps) return std::nullopt;
    layers = std::max(layers, head.first + 1);
    heads = std::max(heads, head.second + 1);
  }
  auto const each = std::max<Index>(layers, 1) * std::max<Index>(heads, 1);
  std::vector<double> values(static_cast<std::size_t>(seeds * steps * each), std::nan(""));
  for (auto const& [head, recorded] : by_head) {
    auto const at = std::max<Index>(head.first, 0) * std::max<Index>(heads, 1) + std::max<Index>(head.second, 0);
    for (std::size_t i = 0; i < recorded.values.size(); ++i)
      values[i * static_cast<std::size_t>(each) + static_cast<std::size_t>(at)] = recorded.values[i];
  }
  Shape shape{seeds, steps};
  for (auto const extent : {layers, heads})
    if (extent > 0) shape.append(extent);
  return Tensor::of(values, shape, DType::float64);
}

/// For each arm and probe `ARM/PROBE` [seeds, steps, layers, heads], or as many of these axes as the probe tells apart (NaN where a layer
/// has no such head), and `ARM/PROBE.steps` [steps]. No file if nothing was probed, or not at the same steps by all seeds.
void write_probes(Ablation const& ablation, std::vector<Jobs> const& done) {
  std::vector<NpyArray> arrays;
  for (std::size_t i = 0; i < done.size(); ++i) {
    auto const& arm = ablation.arms[i];
    for (auto const& [name, by_head] : probes_of(done[i])) {
      auto const values = array_of(by_head, std::ssize(done[i]));
      if (!values) continue;
      auto const& steps = by_head.begin()->second.steps;
      arrays.push_back(NpyArray::of(arm.name + "/" + name, *values));
      arrays.push_back(NpyArray::of(arm.name + "/" + name + ".steps", Tensor::of(steps, {std::ssize(steps)})));
    }
  }
  if (!arrays.empty()) write_npz(ablation.folder() / "probes.npz", arrays);
}

// ---------------------------------------------------------------- summaries

/// The machine and program that computed the numbers: those of the first finished trial.
Json environment_of(std::vector<Job> const& jobs) {
  auto const done = std::ranges::find(jobs, State::done, &Job::state);
  return done == jobs.end() ? environment() : read_json(done->folder() / "summary.json").value("environment", Json::object());
}

/// Whether the tables are those that the summary was written with.
bool tables_are_whole(fs::path const& folder) try {
  for (auto const& file : files_written(folder)) check_written(folder, file);
  return true;
} catch (FileError const&) {
  return false;
}

}  // namespace

std::string value_in(ArmResult const& arm, std::string const& key) {
  for (auto const* const list : {&arm.tuned, &arm.keys})
    if (auto const found = std::ranges::find(*list, key, &KeyValues::value_type::first); found != list->end()) return found->second;
  return "";
}

std::string write_results(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned) {
  auto const result = summarise(ablation, jobs, tuned);
  std::vector<Jobs> done(ablation.arms.size());
  for (Job const& job : jobs)
    if (job.state == State::done) done[job.arm].push_back(&job);
  write_curves(ablation, result, done);
  write_probes(ablation, done);
  return write_summaries(ablation.folder(), result, environment_of(jobs));
}

std::string write_summaries(fs::path const& folder, AblationResult const& result, Json const& environment) {
  write_atomically(folder / "summary.md", summary_markdown(result));
  write_summary(folder, json_of(result, environment), {"results.csv", "probes.npz", "summary.md"});
  return summary_page(folder.string(), result);
}

void renew_results(fs::path const& folder, Folders const& folders) {
  if (!fs::is_regular_file(folder / "ablation.yaml")) return;
  auto const summary = find_json(folder / "summary.json");
  bool const tables = summary && summary->is_object();
  auto const count = [&](char const* key) { return tables && summary->contains(key) ? (*summary)[key] : Json(nullptr); };
  if (tables && count("trials_done") == count("trials_of") && tables_are_whole(folder)) return;
  Ablation ablation;
  try {
    ablation = ablation_in(folder, {}, folders);
  } catch (ConfigError const&) {
    if (tables) return;
    throw;
  }
  AblationTrials trials;
  trials.look(ablation);
  write_results(ablation, trials.jobs, trials.tuned);
}

}  // namespace heed
