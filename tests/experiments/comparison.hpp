#pragma once

#include "experiments/metric/statistics.hpp"
#include "tests/test.hpp"

// Values and differences by seed as the suites of statistics write them down.

namespace heed::test {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// Of seeds 1, 2, ….
inline BySeed by_seed(std::vector<double> const& values) {
  BySeed result;
  for (double const value : values) result.emplace(static_cast<Index>(result.size()) + 1, value);
  return result;
}

inline Comparison compare_one(std::vector<double> const& arm, std::vector<double> const& baseline, Question const& question = {}) {
  return compare(std::vector{by_seed(arm)}, by_seed(baseline), question).at(0);
}

/// A comparison of these differences.
inline Comparison of(std::vector<double> const& differences, Question const& question = {}) {
  return compare_one(differences, std::vector(differences.size(), 0.0), question);
}

}  // namespace heed::test
