#include "experiments/ablation/arm_result.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/run/csv.hpp"
#include "experiments/run/history.hpp"
#include "experiments/run/result_file.hpp"
#include "experiments/text/npz.hpp"
#include "nn/files/atomic_file.hpp"

namespace heed {

using Json = nlohmann::ordered_json;
using State = Job::State;

namespace {

/// What may differ between equal runs.
bool is_cost(std::string const& metric) { return metric.starts_with("time.") || metric.starts_with("memory."); }

/// A finite number of a summary; nothing if there is none.
std::optional<double> finite(Json const& summary, char const* key) {
  auto const found = summary.find(key);
  if (found == summary.end() || !found->is_number() || !std::isfinite(found->get<double>())) return std::nullopt;
  return found->get<double>();
}

}  // namespace

std::vector<ArmResult> gather(Ablation const& ablation, std::vector<Job> const& jobs) {
  std::vector<ArmResult> arms;
  for (auto const& arm : ablation.arms) arms.push_back({arm.name, arm.changes, {}, {}, {}, {}, 0});
  double const infinity = std::numeric_limits<double>::infinity(), worst = ablation.settings.higher_is_better() ? -infinity : infinity;
  for (Job const& job : jobs) {
    auto& arm = arms.at(job.arm);
    if (job.state == State::failed && job.failure.diverged) arm.values[job.seed] = worst;
    if (job.state == State::done) arm.values[job.seed] = std::isnan(*job.value) ? worst : *job.value;
    if (auto const value = arm.values.find(job.seed); value != arm.values.end() && std::isinf(value->second))
      arm.diverged.push_back(job.seed);
    if (job.state != State::done) continue;
    arm.jobs.push_back(&job);
    auto const summary = read_json(job.folder() / "summary.json");
    if (auto const count = summary.find("parameters"); count != summary.end() && count->is_number_integer()) arm.parameters = *count;
    for (char const* name : {"time.seconds", "time.tokens_per_second", "memory.peak"}) {
      if (auto const value = finite(summary, name)) arm.costs[name].push_back(*value);
    }
  }
  return arms;
}

void write_csv(Ablation const& ablation, TuningResult const& tuned, std::vector<ArmResult> const& arms) {
  AtomicFile file(ablation.folder() / "results.csv");
  auto keys = ablation.varied;
  if (ablation.tuning)
    for (auto const& change : ablation.tuning->points.front().changes)
      if (std::ranges::find(keys, change.key) == keys.end()) keys.push_back(change.key);
  std::string head = "arm";
  for (auto const& key : keys) head += "," + csv_field(key);
  file.write(head + ",seed,step,metric,value\n");
  for (std::size_t i = 0; i < arms.size(); ++i) {
    auto const& arm = arms[i];
    auto const changes = joined(choice_of(ablation, tuned, i), arm.changes);  // what was chosen stands in an arm's own value's place
    std::string start = csv_field(arm.name);
    for (auto const& key : keys) {
      auto const change = std::ranges::find(changes, key, &Assignment::key);
      start += "," + (change == changes.end() ? "" : csv_field(emit_line(change->value)));
    }
    for (Job const* job : arm.jobs) {
      std::string text;
      for (auto const& [metric, series] : read_history(job->folder())) {
        std::size_t const first = is_cost(metric) ? series.size() - 1 : 0;
        for (std::size_t at = first; at < series.size(); ++at)
          text += fmt::format("{},{},{},{},{}\n", start, job->seed, series[at].first, csv_field(metric), series[at].second);
      }
      file.write(text);
    }
  }
  file.commit();
}

void write_probes(Ablation const& ablation, std::vector<ArmResult> const& arms) {
  std::vector<NpyArray> arrays;
  for (auto const& arm : arms) {
    std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<double>>> found;  // steps, and values seed after seed
    for (Job const* job : arm.jobs) {
      for (auto const& [metric, series] : read_history(job->folder())) {
        if (!metric.starts_with("probe.")) continue;
        auto& [steps, values] = found[metric];
        if (steps.empty()) std::ranges::transform(series, std::back_inserter(steps), [](auto const& row) { return row.first; });
        for (auto const& [step, value] : series) values.push_back(value);
      }
    }
    auto const seeds = static_cast<std::int64_t>(arm.jobs.size());
    for (auto const& [metric, rows] : found) {
      auto const count = static_cast<std::int64_t>(rows.first.size());
      if (static_cast<std::int64_t>(rows.second.size()) != seeds * count) continue;  // seeds that were probed at other steps
      arrays.push_back(NpyArray::of(arm.name + "/" + metric, Tensor::of(rows.second, {seeds, count}, DType::float64)));
      arrays.push_back(NpyArray::of(arm.name + "/" + metric + ".steps", Tensor::of(rows.first, {count})));
    }
  }
  if (!arrays.empty()) write_npz(ablation.folder() / "probes.npz", arrays);
}

}  // namespace heed
