#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/ablation/plan.hpp"

namespace heed {

// What an ablation's file says of its arms, read. All of these throw ConfigError at the place of what is wrong.

/// The value of a key; null if it is missing or empty.
Yaml const* value_at(Document const& document, std::string const& key);

/// `{key: value, …}` of keys of the base; `section` names it in messages.
std::vector<Assignment> assignments_of(Yaml const& node, std::string const& section);

/// The complete configuration that changes make of the base, as text without its name. Throws ConfigError where they make none.
std::string configuration_of(Document base, std::vector<Assignment> const& changes);

/// A number of seeds, from `first` on, or a list of them.
std::vector<std::int64_t> seeds_of(Yaml const& node, std::string const& key, std::int64_t first);

/// The arms of `vary`, `together`, `skip` and `add`, by different names. `skip` means values, however they are written: 0.001 is 1e-3.
std::vector<Arm> arms_of(Document const& file, Document const& base);

/// The arm that `baseline` names or means; the first without it.
std::size_t baseline_of(Document const& file, Document const& base, std::vector<Arm> const& arms);

/// Refuses two arms, or two points of the tuning grid, that are one configuration, with the places of both; and two arms that the grid
/// makes one, because it sets what they differ in. Fills each of them once.
void check_distinct(Document const& base, std::vector<Arm> const& arms, std::optional<Tuning> const& tuning);

/// The first of the seeds that `tune:` counts: behind all that `seeds:` can count, so that more of those change no choice.
constexpr std::int64_t first_tuning_seed = 10'001;

/// `tune:`; its seeds are none of the comparison's.
std::optional<Tuning> tuning_of(Document const& file, std::vector<std::int64_t> const& seeds);

constexpr double most_arms = 10'000, most_runs = 100'000;
/// Refuses more of something than can be meant, before any of it is made.
void limit(Location const& place, std::string const& what, double count, double most);

/// An arm's name as a part of a folder's: `sparsemax,heads=2`.
std::string folder_label(std::string name);

}  // namespace heed
