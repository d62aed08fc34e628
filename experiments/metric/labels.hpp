#pragma once

#include <cstddef>
#include <vector>

#include "autograd/index.hpp"

namespace heed {

class EvaluatedBatch;

/// counts[label][prediction]. Where a formula divides by zero the result is 0, as in scikit-learn.
using ConfusionMatrix = std::vector<std::vector<Index>>;

/// Counts the most probable class of every row with a label.
void add_labels(EvaluatedBatch const& batch, ConfusionMatrix& counts);

/// 2 · precision · recall / (precision + recall) of a class; class 1 is the positive class of a binary task.
double f1(ConfusionMatrix const& counts, std::size_t of);
/// The mean of f1 over the classes that occur among labels or predictions.
double macro_f1(ConfusionMatrix const& counts);
/// The correlation of labels and predictions (Matthews 1975; for several classes Gorodkin 2004), −1 … 1.
double matthews_correlation(ConfusionMatrix const& counts);

}  // namespace heed
