#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiments/config/table.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/report/grid.hpp"

namespace heed {

/// One arm of an ablation, or a single run.
struct ArmResult {
  std::string name;
  KeyValues keys, tuned;             ///< the arm's keys, and the tuned ones
  std::vector<std::string> folders;  ///< of the finished trials
  Index parameters = 0;
  BySeed values;                         ///< of the metric; worse than any number (infinite) for a seed that diverged
  std::vector<Index> diverged;           ///< seeds with a value that is not finite, or that diverged before their first value
  std::optional<Estimate> estimate;      ///< of the values; nothing without any
  std::optional<Comparison> difference;  ///< to the baseline; nothing without a common seed
  std::optional<double> seconds, tokens_per_second, memory;  ///< means over the trials; memory in bytes
  std::map<Index, History> histories;                        ///< by seed; in results.csv, not in summary.json

  bool has_finite_mean() const { return estimate && std::isfinite(estimate->mean); }
  /// The tuned values, as "lr 3.0e-3"; empty without tuning.
  std::string tuned_words() const;
  /// "scaled", or "scaled (lr 3.0e-3)".
  std::string name_with_tuned() const;
};

/// A main effect: the difference between two values of a key, averaged over the combinations of the other keys for which all arms exist; or
/// an interaction: how that difference changes between two values of another key.
struct Effect {
  std::string name;  ///< "position: rotary − learned", "position × heads: (rotary − learned) × (2 − 1)"
  bool interaction = false;
  Comparison comparison;  ///< with 0; p is corrected for the number of effects; mean NaN if infinite values leave it undetermined
  std::string sentence;   ///< the effect in words, not in JSON; empty if it is not significant
  std::size_t averaged = 0, combinations = 0;  ///< averaged over this many of all combinations of the other keys
};

/// Whether each effect is averaged over all combinations of the other keys.
bool over_all_combinations(std::vector<Effect> const& effects);

/// Whether a metric rises or falls with a numeric key, for fixed values of the other keys.
struct Trend {
  std::string key, elsewhere;  ///< "init.layers"; the other keys' values, "dropout 0.1", or empty
  std::size_t values = 0;      ///< number of distinct values of the key
  Estimate correlation;        ///< Spearman's ρ of the key and the metric within a seed, averaged over the seeds
  double p = 1;                ///< that these are symmetric about 0, by sign flips, corrected for the number of trends
  std::string sentence;        ///< not in JSON
};

/// Published values of an ablation's metric: one number, or numbers by training step; without an interval.
struct Published {
  std::string name;                             ///< the source's name
  std::vector<std::pair<Index, double>> curve;  ///< by step, rising; empty for one number
  double value = 0;                             ///< the number, or that of the last step
};

/// The result of `tune:`.
struct TuningScores {
  struct Point {
    std::string name;
    KeyValues keys;
  };
  struct Tuned {
    std::string name;
    std::vector<std::optional<double>> scores;  ///< by point; nothing if a trial failed or is missing
    std::vector<std::vector<double>> values;    ///< by point, of its trials
    std::optional<std::size_t> chosen;
  };
  std::vector<Index> seeds;
  std::vector<Point> points;
  std::vector<Tuned> arms;
};

struct FailedTrial {
  std::string arm;  ///< with " (tuning)" for an arm at a point of the tuning grid
  Index seed = 0;
  std::string folder, message;
  std::vector<std::string> log;
};

/// The joint result of an ablation's trials, for tables, summary.json and report. A single run is one arm without a comparison.
struct AblationResult {
  std::string name, metric;
  std::string better = "lower", at = "last";  ///< which value of a trial counts: last, best, or kept if trials keep their best weights
  std::string unit;
  double margin = 0;  ///< 0: none
  std::vector<Index> seeds;
  std::string baseline;  ///< an arm's name; empty for a single run
  std::vector<std::string> varied;
  Index steps = 0;
  std::vector<ArmResult> arms;
  std::vector<FailedTrial> failures;
  std::vector<std::pair<std::string, Index>> missing;  ///< arm, seed
  std::size_t trials_done = 0, trials_of = 0;          ///< tuning included; equal when all trials have ended
  std::vector<std::string> trials;                     ///< their folders, tuning included
  std::vector<Effect> effects;
  std::vector<Trend> trends;
  std::vector<std::string> sentences, warnings;
  std::string configuration;  ///< YAML
  std::optional<TuningScores> tuning;
  std::vector<Published> published;

  ArmResult const* baseline_arm() const;
  Question question() const { return {.better = better == "higher" ? Better::higher : Better::lower, .margin = margin}; }
  /// Arm − baseline in the order of seeds, up to the first that is missing; without those on which both diverged or one failed.
  std::vector<double> differences(ArmResult const& arm) const;
  /// The number format of the metric.
  NumberFormat format() const;
  /// Whether p is from evidence (metric/evidence.hpp), not that of the sign-flip test.
  bool by_evidence() const;
  /// What p is: that of the sign-flip test, or from evidence (metric/evidence.hpp).
  std::string test_in_words() const;
  /// The grid of the keys that arms combine; nothing if they vary one key.
  std::optional<Grid> grid() const;
  /// A table of the arms: mean, interval, difference (of the baseline that word), p of two tests, effect, verdict, seeds, costs
  /// and tuned values; some columns may be empty.
  TableRows arm_rows() const;
  /// A table of the effects of keys, below this head of their differences.
  TableRows effect_rows(std::string const& head) const;
  /// The scores of the tuning grid, a column per point; a mark behind the selected ones.
  TableRows tuning_rows(std::string const& mark) const;
};

/// For summary.json. `environment`: machine, build and library versions (run/record.hpp).
nlohmann::ordered_json json_of(AblationResult const& result, nlohmann::ordered_json const& environment);
/// Parses json_of()'s output except the environment; most members may be absent. Throws Error and JSON's exceptions for anything else.
AblationResult ablation_result_of(nlohmann::ordered_json const& json);

// Members of any summary.json.

/// A number that may be infinite; nothing if it is absent, null or NaN.
std::optional<double> real_at(nlohmann::ordered_json const& json, char const* key);
/// A non-negative integer; 0 if it is absent. Throws Error for anything else.
Index whole_at(nlohmann::ordered_json const& json, char const* key);
/// Each key of the object `key` with its value as text; nothing if there is no such object.
std::vector<std::pair<std::string, std::string>> texts_at(nlohmann::ordered_json const& json, char const* key);
/// An arm's number of parameters, seconds, tokens per second and memory.
void read_costs(nlohmann::ordered_json const& json, ArmResult& arm);

}  // namespace heed
