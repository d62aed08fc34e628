#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "experiments/config/yaml.hpp"
#include "experiments/data/files.hpp"
#include "experiments/report/ablation_result.hpp"

namespace heed {

/// What a simple rule reaches in a metric.
struct BaselineValue {
  std::string name, metric;
  double value = 0;
};

/// What lies on disk of an ablation, or of a single run: its result and what is beside it.
struct Material : AblationResult {
  std::filesystem::path folder;
  bool single = false;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::pair<std::string, double>> reference_losses;
  std::vector<BaselineValue> baselines;
  std::vector<HashedFile> read;  ///< by the runs, each content of a file once
};

/// Reads the summary.json of an ablation's or a run's folder, and the curves from results.csv or metrics.jsonl. What is lacking beside the
/// summary becomes a warning. Throws FileError if there is no summary or it is none.
Material read_material(std::filesystem::path const& folder);

/// An arm's whole configuration, as its first run has resolved it; empty where that is not there any more. Throws FileError if its summary
/// cannot be read.
Yaml configuration_of(Material const& material, ArmResult const& arm);

}  // namespace heed
