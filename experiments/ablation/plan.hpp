#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/config.hpp"
#include "experiments/report/ablation_result.hpp"
#include "experiments/run/experiment.hpp"

namespace heed {

/// A key of an ablation's file: what it means, and a line that uses it.
struct AblationKey {
  std::string name, help, example;
};

/// All of them, in the order in which one writes them. `heed list ablation`, the schema and the README tell them from here.
std::vector<AblationKey> const& ablation_keys();

/// What the key of this name means.
std::string const& ablation_help(std::string const& name);

/// `published: {a tutorial's run: {1000: 22.5, 7000: 95.4}, a paper: 28.1}`. Throws ConfigError at the place of what is wrong.
std::vector<Published> published_of(Document const& file);

/// "soft: 0.9520 [0.9410, 0.9630]; Joey NMT's tutorial reports 0.9540, which lies inside". Nothing of a curve that ends at another step
/// than training does.
std::optional<std::string> beside_published(Published const& published, std::string const& arm, Estimate const& measured,
                                            std::int64_t steps);

/// `ablation:` the keys with one value each; those that hold keys of the base (set, vary, together, add, skip, tune) or numbers by name
/// (published) are read beside it.
struct AblationSettings : Settings {
  std::string ablation;                    ///< its name, and its folder's
  std::string base;                        ///< a file of one run; the ablation's own name where it holds the run itself
  std::optional<std::string> paths;        ///< where relative paths of the base begin
  std::string metric = "validation.loss";  ///< of metrics.jsonl: a name that is declared (metric/info.hpp)
  std::optional<std::string> better;       ///< lower or higher; default: as the metric says
  std::string at = "last";                 ///< which value of a trial counts: the last, or the best
  std::optional<double> margin;            ///< differences smaller than this do not matter; without one, none is called equivalent
  std::vector<Field> fields() override;

  bool higher_is_better() const;
};

/// A key of the base, and what an arm gives it.
struct Assignment {
  std::string key;
  Yaml value;
};

/// One thing that is compared: a name, and what it changes in the base.
struct Arm {
  std::string name;
  std::vector<Assignment> changes;
  Location place{};  ///< of an arm with a name of its own
};

/// `tune: {grid: {train.optimizer.lr: [0.001, 0.003]}, seeds: 2}`: every arm is trained at each point of a small grid on seeds of its own,
/// and takes the point with the best mean.
struct Tuning {
  std::vector<Arm> points;
  std::vector<std::int64_t> seeds;
};

/// An ablation file, understood.
struct Ablation {
  AblationSettings settings;
  Document base;
  Places places;                    ///< config_folder is where relative paths of the base begin
  std::vector<std::string> varied;  ///< the keys in which arms differ, in the file's order
  std::vector<Arm> arms;
  std::vector<std::int64_t> seeds;
  std::size_t baseline = 0;  ///< the arm that others are compared with
  std::optional<Tuning> tuning;
  std::vector<Published> published;
  std::string resolved;  ///< the file as YAML, complete: overrides are in it, and the base itself; read again, it is the same

  std::filesystem::path folder() const { return places.output / settings.ablation; }
};

/// Whether a document describes an ablation. Throws ConfigError for one that has an ablation's keys, but not its name.
bool is_ablation(Document const& document);

/// Reads an ablation file and its base. Overrides of the ablation's own keys (`seeds=3`, `metric=…`) change it, all others the base. Every
/// arm is filled once, at every point of the tuning grid too, so that a wrong key or value is told here, and two that are the same
/// configuration. Throws ConfigError.
Ablation load_ablation(std::filesystem::path const& file, std::vector<std::string> const& overrides, Places const& places);

/// A run of an arm with a seed, named ARM-seedK-HASH after its resolved configuration, inside the ablation's folder.
LoadedExperiment trial_of(Ablation const& ablation, std::string const& arm, std::vector<Assignment> const& changes, std::int64_t seed);

/// The run of an arm at a point of the tuning grid.
LoadedExperiment tuning_trial(Ablation const& ablation, Arm const& arm, Arm const& point, std::int64_t seed);

/// The run of an arm that begins first: at the first point of the tuning grid, if there is one.
LoadedExperiment first_trial(Ablation const& ablation, Arm const& arm);

/// Changes, and more of them after these.
std::vector<Assignment> joined(std::vector<Assignment> changes, std::vector<Assignment> const& more);

}  // namespace heed
