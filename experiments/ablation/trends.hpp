#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/metric/statistics.hpp"
#include "experiments/report/grid.hpp"

namespace heed {

/// Whether a metric rises or falls with a key whose values are numbers, other keys being as they are.
struct Trend {
  std::string key, elsewhere;  ///< "init.layers"; what the other keys are, "dropout 0.1"; empty if there are none
  std::size_t values = 0;      ///< different ones of the key
  Estimate correlation;        ///< Spearman's ρ of the key and the metric within a seed, its mean over the seeds
  std::string sentence;
};

/// Spearman's rank correlation of two lists of as many finite numbers, ties having their mean rank (Spearman 1904); NaN if either is
/// constant.
double spearman(std::span<double const> x, std::span<double const> y);

/// Of each key that has three values or more, all numbers. `keys`, `values`: of each arm; a seed that an arm of a trend lacks, or where its
/// value is infinite, does not count. `metric` and its values' format are for the sentence. None of fewer than two seeds.
std::vector<Trend> trends_of(std::vector<Keys> const& keys, std::vector<BySeed> const& values, std::string const& metric);

}  // namespace heed
