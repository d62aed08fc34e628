#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/report/ablation_result.hpp"

namespace heed {

/// The main effects of a grid, and the interactions of each two of its keys, against the values of the arm `baseline` (else the first).
/// `values`: of each arm, by seed; a seed that an arm lacks is left out.
std::vector<Effect> effects_of(Grid const& grid, std::vector<BySeed> const& values, std::size_t baseline, std::string const& unit,
                               Question const& question);

/// Spearman's rank correlation of two lists of as many finite numbers, ties having their mean rank (Spearman 1904); NaN if either is
/// constant.
double spearman(std::span<double const> x, std::span<double const> y);

/// Of each key that has three values or more, all numbers. `keys`, `values`: of each arm; a seed that an arm of a trend lacks, or where its
/// value is infinite, does not count. `metric` and its values' format are for the sentence. None of fewer than two seeds.
std::vector<Trend> trends_of(std::vector<Keys> const& keys, std::vector<BySeed> const& values, std::string const& metric);

}  // namespace heed
