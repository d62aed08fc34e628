#pragma once

#include <cstddef>
#include <vector>

#include "experiments/study/softmax_scaling.hpp"

namespace heed {

/// The difference of a measured number from theory, in standard errors.
struct ZScore {
  ScalingCell const* cell;
  Quantity quantity;
  double z;
};

/// For every number of these cells with a theoretical value. Numbers without variance, which agree up to rounding, are left out.
std::vector<ZScore> scores_of(std::vector<ScalingCell> const& cells);

/// The joint agreement of scores.
struct ScoreAgreement {
  std::size_t draws = 0;   ///< number of (distribution, d_k, keys) combinations
  double mean_square = 0;  ///< the mean over these of the mean z²: 1 is expected if theory and standard errors are right
  Interval expected{};     ///< quantiles of χ²_N / N at 2.5 % and 97.5 %, N the number of draws
  ZScore farthest{};       ///< the one with the largest |z|
};

/// All numbers of one distribution, d_k and number of keys are measured on the same samples and are correlated, so that each draw counts
/// once. The range is for one score per draw; averages of several partly independent scores lie closer to 1. Requires at least one score.
ScoreAgreement agreement_of(std::vector<ZScore> const& scores);

}  // namespace heed
