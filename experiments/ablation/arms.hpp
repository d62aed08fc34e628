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

/// A number of seeds, from `first` on, or a list of them.
std::vector<std::int64_t> seeds_of(Yaml const& node, std::string const& key, std::int64_t first);

/// The arms of `vary`, `together`, `skip` and `add`, by different names.
std::vector<Arm> arms_of(Document const& file);

/// The arm that `baseline` names; the first without it.
std::size_t baseline_of(Document const& file, std::vector<Arm> const& arms);

/// `tune:`; its seeds are none of the comparison's.
std::optional<Tuning> tuning_of(Document const& file, std::vector<std::int64_t> const& seeds);

constexpr double most_arms = 10'000, most_runs = 100'000;
/// Refuses more of something than can be meant, before any of it is made.
void limit(Place const& place, std::string const& what, double count, double most);

/// An arm's name as a part of a folder's: `sparsemax,heads=2`.
std::string folder_label(std::string name);

}  // namespace heed
