#pragma once

#include <vector>

#include "experiments/train/gradient_sum.hpp"
#include "nn/model.hpp"

// What the ranks that train one run together exchange in a step.

namespace heed {

/// Results of a step's micro-batches, besides gradients.
struct StepResults {
  std::vector<double> losses;  ///< by micro-batch
  double tokens = 0;           ///< of "inputs", without padding
};

/// The counts of the micro-batches of all ranks. They are integers, so their sums are exact in any order.
Counts counts_of_all(Counts const& own);

/// Replaces the parameters' gradients, which are those of this rank's micro-batches, by the sums over all ranks along the tree, and the
/// results by those of all ranks. A parameter without a gradient on any rank has none.
void sum_over_ranks(GradientSum const& own, StepResults& results);

}  // namespace heed
