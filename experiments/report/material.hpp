#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiments/config/table.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/data/read_files.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/report/grid.hpp"
#include "experiments/run/history.hpp"

namespace heed {

/// An arm beside the baseline, as summary.json has it.
struct ReportedDifference {
  double mean = 0;
  std::optional<Interval> interval;
  double p = 1;
  std::optional<double> effect;
  std::string verdict;
  std::optional<double> p_t = {};  ///< of a paired t test; absent in summaries that were written without
  bool ranked = false;             ///< p is of signed ranks
};

/// One arm of an ablation, or a single run.
struct ReportedArm {
  std::string name;
  std::vector<std::pair<std::string, std::string>> keys, tuned;  ///< what the arm sets, and what tuning chose
  std::vector<std::string> folders;                              ///< of the trials that are done
  std::int64_t parameters = 0;
  BySeed values;  ///< of the metric; infinite of seeds that diverged
  std::vector<std::int64_t> diverged;
  std::optional<double> mean;
  std::optional<Interval> interval;
  std::optional<ReportedDifference> difference;
  std::optional<double> seconds, tokens_per_second, memory;  ///< means over the trials; memory in bytes
  std::map<std::int64_t, History> histories;                 ///< by seed
};

/// A main effect or an interaction of a grid.
struct ReportedEffect {
  std::string name;
  bool interaction = false;
  double mean = 0;
  std::optional<Interval> interval;
  double p = 1;
  std::size_t averaged = 0, combinations = 0;  ///< over how many combinations of the other keys, of how many; 0: not said
};

/// The grid of `tune:`.
struct ReportedTuning {
  struct Point {
    std::string name;
    std::vector<std::pair<std::string, std::string>> keys;
  };
  struct Tuned {
    std::string name;
    std::vector<std::optional<double>> scores;  ///< by point; nothing where a trial failed or is missing
    std::vector<std::vector<double>> values;    ///< by point, of its trials
    std::optional<std::size_t> chosen;
  };
  std::size_t seeds = 0;
  std::vector<Point> points;
  std::vector<Tuned> arms;
};

/// What a simple rule reaches in a metric.
struct ReportedBaseline {
  std::string name, metric;
  double value = 0;
};

struct ReportedFailure {
  std::string arm;
  std::int64_t seed = 0;
  std::string message;
  std::vector<std::string> log;
};

/// What others have reported of the metric: a value, or values by step.
struct ReportedElsewhere {
  std::string name;
  std::vector<std::pair<std::int64_t, double>> curve;
  double value = 0;
};

/// What lies on disk of an ablation, or of a single run, which is an ablation of one arm without a comparison.
struct Material {
  std::filesystem::path folder;
  std::string name;
  bool single = false;
  std::string metric, better, at, unit;
  double margin = 0;
  std::size_t seeds = 0;                       ///< how many were asked for
  std::size_t trials_done = 0, trials_of = 0;  ///< of an ablation, tuning included; equal when all have ended
  std::string baseline;                        ///< an arm's name; empty for a single run
  std::vector<std::string> varied;
  std::int64_t steps = 0;
  std::vector<ReportedArm> arms;
  std::vector<ReportedEffect> effects;
  std::optional<ReportedTuning> tuning;
  std::vector<ReportedElsewhere> published;
  std::vector<ReportedFailure> failures;
  std::vector<std::pair<std::string, std::int64_t>> missing;  ///< arm, seed
  std::vector<std::string> sentences, warnings;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::pair<std::string, double>> reference_losses;
  std::vector<ReportedBaseline> baselines;
  std::string configuration, base;  ///< YAML
  std::vector<HashedFile> read;     ///< by the runs, each content of a file once

  ReportedArm const* baseline_arm() const;
  /// How the metric is written.
  NumberFormat format() const;
  /// Of the keys that arms combine; nothing if they vary one.
  std::optional<Grid> grid() const;
};

/// Reads the summary.json of an ablation's or a run's folder, and the curves from results.csv or metrics.jsonl. What is lacking beside the
/// summary becomes a warning. Throws FileError if there is no summary or it is none.
Material read_material(std::filesystem::path const& folder);

/// Each key of the object `key` with its value as one text; nothing if there is no such object.
std::vector<std::pair<std::string, std::string>> texts_of(nlohmann::ordered_json const& json, char const* key);

/// An arm's whole configuration, as its first run has resolved it; empty where that is not there any more. Throws FileError if its summary
/// cannot be read.
Yaml configuration_of(Material const& material, ReportedArm const& arm);

}  // namespace heed
