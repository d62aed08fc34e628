#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/ablation/plan.hpp"

namespace heed {

// Parsing of an ablation's file. All functions throw ConfigError at the location of the mistake.

/// The value of a key; null if it is missing or empty.
Yaml const* value_at(Document const& document, std::string const& key);

/// `{key: value, …}` with keys of the base; `section` names it in messages.
std::vector<Assignment> assignments_of(Yaml const& node, std::string const& section);

/// The complete configuration of the base with these changes, as text without its name. Throws ConfigError if the changes are invalid.
std::string full_configuration(Document base, std::vector<Assignment> const& changes);

/// A number of seeds, counted from `first`, or a list of seeds.
std::vector<Index> seeds_of(Yaml const& node, std::string const& key, Index first);

/// The arms of `vary`, `together`, `skip` and `add`, with distinct names. `skip` compares values, not their spelling: 0.001 is 1e-3.
std::vector<Arm> arms_of(Document const& file, Document const& base);

/// The arm that `baseline` gives by name or by values; by default the first.
std::size_t baseline_of(Document const& file, Document const& base, std::vector<Arm> const& arms);

/// Refuses two arms, or two points of the tuning grid, with the same configuration, giving both locations; and two arms that become the
/// same because the grid overrides the keys in which they differ. One point without changes: arms alone. Fills each configuration once.
void check_distinct(Document const& base, std::vector<Arm> const& arms, std::vector<Arm> const& points);

/// The first seed of `tune:`: larger than any that `seeds:` counts to, so that adding seeds does not change what is chosen.
constexpr Index first_tuning_seed = 10'001;

/// `tune:`; its seeds must differ from the comparison's.
std::optional<Tuning> tuning_of(Document const& file, std::vector<Index> const& seeds);

constexpr double max_arms = 10'000, max_runs = 100'000;
/// Throws ConfigError if `count` exceeds `max_count`, before anything is allocated.
void limit(Location const& location, std::string const& what, double count, double max_count);

/// An arm's name as part of a folder's name: `sparsemax,heads=2`.
std::string folder_label(std::string name);

}  // namespace heed
