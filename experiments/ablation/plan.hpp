#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/ablation/claim.hpp"
#include "experiments/config/config.hpp"
#include "experiments/program/run_options.hpp"
#include "experiments/report/ablation_result.hpp"
#include "experiments/train/experiment.hpp"

namespace heed {

/// A key of an ablation file, with its help text and an example line.
struct AblationKey {
  std::string name, help, example;
};

/// All keys, in the order in which they are usually written: for `heed list ablation`, the schema and the README.
std::vector<AblationKey> const& ablation_keys();
std::string const& ablation_help(std::string const& name);

/// "soft: 0.9520 [0.9410, 0.9630]; a paper reports 0.9540, which lies inside". Nothing for a curve that ends at another step than training.
std::optional<std::string> beside_published(Published const& published, std::string const& arm, Estimate const& measured, Index steps);

/// The keys of an ablation file that have one value each; those that hold keys of the base, or numbers by name, are read separately.
struct AblationSettings : Settings {
  std::string ablation;                    ///< the name of the ablation and of its folder
  std::string base;                        ///< a file of one run; the ablation's own name if the ablation file contains the run
  std::optional<std::string> paths;        ///< the folder that relative paths of the base refer to
  std::string metric = "validation.loss";  ///< a metric of metrics.jsonl, declared in metric/info.hpp
  std::optional<std::string> better;       ///< lower or higher; default: that of the metric
  std::string at = "last";                 ///< the value of a trial that is compared: last or best
  std::optional<double> margin;            ///< of equivalence: smaller differences do not matter; nothing: no test of equivalence
  bool stop_losers = false;
  std::optional<Index> until_verdict;  ///< seeds that every arm gets at least
  std::optional<std::string> trials;   ///< their folder, relative to the ablation's
  ClaimSettings claim;
  std::optional<std::string> shard;  ///< "I/N": only the trials of part I of N, counted from 0
  std::vector<Field> fields() override;

  bool higher_is_better() const;
  Question question() const;
  /// Whether evidence decides how many seeds an arm gets (give_out_seeds).
  bool by_evidence() const { return stop_losers || until_verdict; }
};

/// A key of the base and its value.
using Assignment = Yaml::Entry;

/// An arm of the comparison: its name, and its changes to the base.
struct Arm {
  std::string name;
  std::vector<Assignment> changes;
  Location location{};  ///< in the file, for an arm that is named there
};

/// `tune: {grid: {train.optimizer.lr: [0.001, 0.003]}, seeds: 2}`: every arm is trained at each point of a small grid, on separate seeds,
/// and uses the point with the best mean; or `{random: {KEY: {log: [a, b]}}, trials: 12}`: at points that are drawn.
struct Tuning {
  std::vector<Arm> points;
  std::vector<Index> seeds;
};

/// One of the parts into which an ablation's trials are divided for machines that share no folder.
struct Shard {
  std::size_t index = 0, count = 1;
};

/// An ablation file with its base, read and checked.
struct Ablation {
  AblationSettings settings;
  Document base;
  Location metric_location;         ///< of settings.metric
  Folders folders;                  ///< config_folder: the folder that relative paths of the base refer to
  std::vector<std::string> varied;  ///< the keys in which arms differ, in the file's order
  std::vector<Arm> arms;
  std::vector<Index> seeds;
  std::size_t baseline = 0;  ///< the arm that others are compared with
  std::optional<Tuning> tuning;
  std::vector<Published> published;
  Shard shard{};
  std::string resolved;  ///< the complete file as YAML, with overrides and base; reading it gives the same ablation

  std::filesystem::path folder() const { return folders.output / settings.ablation; }
  std::filesystem::path trials_folder() const { return settings.trials ? (folder() / *settings.trials).lexically_normal() : folder(); }
  /// Whether the trial of an arm with the seed number `seed` (from 0) is in the shard: trial k, counted seed by seed, is in shard k mod N.
  /// With `tune:` it is arm k, with all of its trials, because those of tuning choose the values of the others.
  bool in_shard(std::size_t arm, std::size_t seed) const { return (tuning ? arm : seed * arms.size() + arm) % shard.count == shard.index; }
  /// Tuning included.
  std::size_t trials_in_shard() const;
};

/// Whether a document is an ablation. Throws ConfigError for one that has keys of an ablation but not the key `ablation`.
bool is_ablation(Document const& document);

/// Reads an ablation file and its base. Overrides of the ablation's own keys (`seeds=3`, `metric=…`) change the ablation, all others the
/// base. Throws ConfigError, also for what is wrong with an arm alone, or at a point of the tuning grid, and for arms that are the same.
Ablation load_ablation(Document file, std::vector<std::string> const& overrides, Folders const& folders);
inline Ablation load_ablation(std::filesystem::path const& file, std::vector<std::string> const& overrides, Folders const& folders) {
  return load_ablation(load(file), overrides, folders);
}
/// That of the command line.
inline Ablation load_ablation(RunOptions const& options) { return load_ablation(options.config, options.overrides, options.folders); }

/// The ablation of a folder, from its ablation.yaml, wherever the folder has been moved. Throws ConfigError.
Ablation ablation_in(std::filesystem::path const& folder, std::vector<std::string> const& overrides, Folders const& folders);

/// The run of an arm with a seed, named ARM-seedK-HASH (HASH: of its resolved configuration), in the ablation's folder.
LoadedExperiment trial_of(Ablation const& ablation, std::string const& arm, std::vector<Assignment> const& changes, Index seed);

/// The same at a point of the tuning grid.
LoadedExperiment tuning_trial(Ablation const& ablation, Arm const& arm, Arm const& point, Index seed);

std::vector<Assignment> joined_changes(std::vector<Assignment> changes, std::vector<Assignment> const& more);

}  // namespace heed
