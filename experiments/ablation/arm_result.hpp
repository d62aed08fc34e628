#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "experiments/ablation/jobs.hpp"
#include "experiments/ablation/tuning.hpp"
#include "experiments/metric/statistics.hpp"

namespace heed {

/// All trials of one arm.
struct ArmResult {
  std::string name;
  std::vector<Assignment> changes;
  std::vector<Job const*> jobs;
  BySeed values;                                     ///< infinite, and worse than any number, of a seed that diverged
  std::vector<std::int64_t> diverged;                ///< seeds whose value is not finite, or that ended before they had one because of that
  std::vector<std::int64_t> stopped;                 ///< steps at which trials ended early (train.stop)
  std::map<std::string, std::vector<double>> costs;  ///< time.* and memory.* of the trials that say so
  std::int64_t parameters = 0;

  /// The mean of a cost over the trials; nothing if none says.
  std::optional<double> cost(std::string const& key) const {
    auto const found = costs.find(key);
    if (found == costs.end()) return std::nullopt;
    auto const& all = found->second;
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  }
};

/// What the jobs of each arm have left on disk that are finished or diverged. Throws FileError for a damaged trial.
std::vector<ArmResult> gather(Ablation const& ablation, std::vector<Job> const& jobs);

/// results.csv: one row a number: arm, varied keys, keys that were tuned, with what was chosen, seed, step, metric, value.
void write_csv(Ablation const& ablation, TuningResult const& tuned, std::vector<ArmResult> const& arms);

/// probes.npz: for each arm and probe `ARM/PROBE` [seeds, steps, layers, heads], or as many of these axes as the probe tells apart (NaN
/// where a layer has no such head), and `ARM/PROBE.steps` [steps]; nothing if nothing was probed, or not at the same steps by all seeds.
void write_probes(Ablation const& ablation, std::vector<ArmResult> const& arms);

}  // namespace heed
