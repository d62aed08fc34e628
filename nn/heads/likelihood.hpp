#pragma once

#include "nn/model.hpp"

namespace heed {

/// The log-probabilities of options' tokens under a language model, [rows · K]: of each sequence of x [rows · K, T, width] the mean, or the
/// sum, over the places whose targets [rows, K, T] are not −1. Logits are held of one sequence at a time.
Tensor option_scores(LinearHead const& words, Tensor const& targets, bool mean);

}  // namespace heed
