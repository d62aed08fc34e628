#pragma once

#include <string>
#include <vector>

#include "experiments/ablation/plan.hpp"
#include "experiments/report/ablation_result.hpp"

namespace heed {

/// Sentences on arms that differ in data.fold: for the other keys' values the mean over the folds (of the seeds' means) and its interval,
/// and the difference to the baseline's. Folds share training data, so that their values are not independent: the variance of a mean of J
/// folds of F is s²(1/J + 1/(F − 1)), with t of J − 1 degrees of freedom (Nadeau & Bengio 2003, section 3). None without folds.
std::vector<std::string> cross_validation_in_words(Ablation const& ablation, AblationResult const& result);

}  // namespace heed
