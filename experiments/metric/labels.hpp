#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heed {

/// How often each class was said of each: counts[right][said]. Where a formula divides by zero it gives 0, as scikit-learn does.
using ConfusionMatrix = std::vector<std::vector<std::int64_t>>;

/// Of labels and what was said instead, numbers of 0 … classes − 1. Throws Error for other numbers and lists of different lengths.
ConfusionMatrix confusion_matrix(std::vector<std::int64_t> const& right, std::vector<std::int64_t> const& said, std::size_t classes);

/// The share that was said rightly.
double accuracy(ConfusionMatrix const& counts);
/// 2 · precision · recall / (precision + recall) of a class; of a binary task class 1 is what is looked for.
double f1(ConfusionMatrix const& counts, std::size_t of);
/// The mean of f1 over the classes that are right or said somewhere.
double macro_f1(ConfusionMatrix const& counts);
/// The correlation of right and said classes (Matthews 1975; of several classes Gorodkin 2004), −1 … 1.
double matthews_correlation(ConfusionMatrix const& counts);

}  // namespace heed
