#pragma once

#include <string>
#include <vector>

#include "experiments/report/ablation_result.hpp"

namespace heed {

/// Main effects of a grid and the interactions of each two of its keys, relative to the values of the arm `baseline` (else the first).
/// `values`: per arm, by seed; a seed that an arm lacks is left out.
std::vector<Effect> effects_of(Grid const& grid, std::vector<BySeed> const& values, std::size_t baseline, std::string const& unit,
                               Question const& question);

/// A trend for each key with at least three values, all of them numbers. `keys`, `values`: per arm; a seed that an arm of a trend lacks, or
/// where its value is infinite, is left out. `metric` and its values' format are for the sentence. No trend from fewer than two seeds.
std::vector<Trend> trends_of(std::vector<KeyValues> const& keys, std::vector<BySeed> const& values, std::string const& metric);

}  // namespace heed
