#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiments/config/table.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/report/grid.hpp"
#include "experiments/run/record.hpp"

namespace heed {

/// One arm of an ablation, or a single run.
struct ArmResult {
  std::string name;
  Keys keys, tuned;                  ///< what the arm sets, and what tuning chose
  std::vector<std::string> folders;  ///< of the trials that are done
  std::int64_t parameters = 0;
  BySeed values;                         ///< of the metric; infinite, and worse than any number, of a seed that diverged
  std::vector<std::int64_t> diverged;    ///< seeds whose value is not finite, or that ended before they had one because of that
  std::optional<Estimate> estimate;      ///< of the values; nothing without any
  std::optional<Comparison> difference;  ///< to the baseline; nothing without a seed that both have
  std::optional<double> seconds, tokens_per_second, memory;  ///< means over the trials; memory in bytes
  std::map<std::int64_t, History> histories;                 ///< by seed; in results.csv, not in summary.json

  bool has_finite_mean() const { return estimate && std::isfinite(estimate->mean); }
  /// What tuning chose, as "lr 3.0e-3"; empty without tuning.
  std::string tuned_words() const;
  /// "scaled", or "scaled (lr 3.0e-3)".
  std::string name_with_tuned() const;
};

/// What a value of one key does, averaged over the combinations of the others of which all arms are there; or by how much more it does
/// beside a value of another key.
struct Effect {
  std::string name;  ///< "position: rotary − learned", "position × heads: (rotary − learned) × (2 − 1)"
  bool interaction = false;
  Comparison comparison;  ///< of the effect with none; p is corrected for the number of effects; mean NaN if infinite values leave it open
  std::string sentence;   ///< what it says in words, not in JSON; empty if p is above the significance
  std::size_t averaged = 0, combinations = 0;  ///< over how many combinations of the other keys, of how many
};

/// Whether each effect is averaged over all combinations of the other keys.
bool over_all_combinations(std::vector<Effect> const& effects);

/// Whether a metric rises or falls with a key whose values are numbers, other keys being as they are.
struct Trend {
  std::string key, elsewhere;  ///< "init.layers"; what the other keys are, "dropout 0.1"; empty if there are none
  std::size_t values = 0;      ///< different ones of the key
  Estimate correlation;        ///< Spearman's ρ of the key and the metric within a seed, its mean over the seeds
  std::string sentence;        ///< not in JSON
};

/// What others have reported of an ablation's metric: one number, or numbers by training step. No interval is known of it.
struct Published {
  std::string name;                                    ///< whose it is
  std::vector<std::pair<std::int64_t, double>> curve;  ///< by step, rising; empty for one number
  double value = 0;                                    ///< the number, or that of the last step
};

/// What came of the grid of `tune:`.
struct TuningScores {
  struct Point {
    std::string name;
    Keys keys;
  };
  struct Tuned {
    std::string name;
    std::vector<std::optional<double>> scores;  ///< by point; nothing where a trial failed or is missing
    std::vector<std::vector<double>> values;    ///< by point, of its trials
    std::optional<std::size_t> chosen;
  };
  std::vector<std::int64_t> seeds;
  std::vector<Point> points;
  std::vector<Tuned> arms;
};

struct FailedTrial {
  std::string arm;  ///< with " (tuning)" of an arm at a point of the tuning grid
  std::int64_t seed = 0;
  std::string folder, message;
  std::vector<std::string> log;
};

/// What an ablation's trials say together: its tables, summary.json and report are written from it. A single run is one arm without a
/// comparison.
struct AblationResult {
  std::string name, metric;
  std::string better = "lower", at = "last";  ///< which value of a trial counts: last, best, or kept where trials keep their best weights
  std::string unit;
  double margin = 0;  ///< 0: none
  std::vector<std::int64_t> seeds;
  std::string baseline;  ///< an arm's name; empty for a single run
  std::vector<std::string> varied;
  std::int64_t steps = 0;
  std::vector<ArmResult> arms;
  std::vector<FailedTrial> failures;
  std::vector<std::pair<std::string, std::int64_t>> missing;  ///< arm, seed
  std::size_t trials_done = 0, trials_of = 0;                 ///< tuning included; equal when all have ended
  std::vector<std::string> trials;                            ///< their folders, tuning included
  std::vector<Effect> effects;
  std::vector<Trend> trends;
  std::vector<std::string> sentences, warnings;
  std::string configuration;  ///< YAML
  std::optional<TuningScores> tuning;
  std::vector<Published> published;

  ArmResult const* baseline_arm() const;
  /// How the metric is written.
  NumberFormat format() const;
  /// Of the keys that arms combine; nothing if they vary one.
  std::optional<Grid> grid() const;
};

/// As summary.json has it. `environment`: the record of what computed the numbers (run/record.hpp).
nlohmann::ordered_json json_of(AblationResult const& result, nlohmann::ordered_json const& environment);
/// What json_of() wrote, environment apart; most members may be absent. Throws Error and JSON's exceptions for what is no such summary.
AblationResult ablation_result_of(nlohmann::ordered_json const& json);

// Members of any summary.json.

/// A number that may be infinite; nothing if it is absent, null or NaN.
std::optional<double> real_at(nlohmann::ordered_json const& json, char const* key);
/// A whole number from 0 on; 0 if it is absent. Throws Error for anything else.
std::int64_t whole_at(nlohmann::ordered_json const& json, char const* key);
/// Each key of the object `key` with its value as one text; nothing if there is no such object.
std::vector<std::pair<std::string, std::string>> texts_at(nlohmann::ordered_json const& json, char const* key);
/// An arm's parameters, seconds, tokens a second and memory.
void read_costs(nlohmann::ordered_json const& json, ArmResult& arm);

}  // namespace heed
