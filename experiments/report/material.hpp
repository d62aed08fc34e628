#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "experiments/config/yaml.hpp"
#include "experiments/data/files.hpp"
#include "experiments/report/ablation_result.hpp"

namespace heed {

/// The value of a metric that a simple rule reaches.
struct BaselineValue {
  std::string name, metric;
  double value = 0;
};

/// The files of an ablation or a single run: its result and what accompanies it.
struct Material : AblationResult {
  std::filesystem::path folder;
  bool single = false;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::pair<std::string, double>> reference_losses;
  std::vector<BaselineValue> baselines;
  std::vector<HashedFile> read;  ///< files that the runs read, without repetition
};

/// Reads the summary.json of an ablation's or a run's folder, and curves from results.csv or metrics.jsonl. Other missing files become
/// warnings. Throws FileError for a missing or invalid summary.
Material read_material(std::filesystem::path const& folder);

/// An arm's whole configuration, as resolved by its first run; empty if no longer there. Throws FileError for an unreadable summary.
Yaml configuration_of(Material const& material, ArmResult const& arm);

}  // namespace heed
