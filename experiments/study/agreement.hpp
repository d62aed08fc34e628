#pragma once

#include <cstddef>
#include <vector>

#include "experiments/study/softmax_scaling.hpp"

namespace heed {

/// How far a measured number lies from theory, in standard errors.
struct ZScore {
  ScalingCell const* cell;
  Quantity quantity;
  double z;
};

/// Of every number of these cells for which theory is known. What does not vary is measured exactly, but for rounding, and is left out.
std::vector<ZScore> scores_of(std::vector<ScalingCell> const& cells);

/// What scores say together.
struct ScoreAgreement {
  std::size_t draws = 0;   ///< how many (distribution, d_k, keys) they are of
  double mean_square = 0;  ///< the mean over these of the mean of z²: 1 expected if theory and standard errors are right
  Interval expected{};     ///< χ²_N / N at 2.5 % and 97.5 %, N the number of draws: where 95 in 100 such means lie
  ZScore farthest{};       ///< of the largest |z|
};

/// All numbers of one distribution, d_k and number of keys are measured on the same samples, under every scale, and move together: each
/// draw counts once. The range is that of one score a draw; those of several that do not wholly agree lie closer to 1. There is a score.
ScoreAgreement agreement_of(std::vector<ZScore> const& scores);

}  // namespace heed
