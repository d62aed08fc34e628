#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "autograd/index.hpp"

namespace heed {

/// Reference losses: the mean −log P (nats per token) of `held_out` under interpolated Witten–Bell models of orders 1 … highest counted on
/// `train` (Witten & Bell 1991; Chen & Goodman 1999, section 2.4):
///
///     P_k(w | h) = (c(h w) + T(h) P_{k−1}(w | h')) / (c(h) + T(h)),    P_0 = 1 / vocabulary,
///
/// with h the k − 1 tokens before w, h' the same without the first, c counts and T(h) the number of different tokens seen after h; P_k =
/// P_{k−1} if h was never followed by anything, or if fewer than k − 1 tokens come before w.
///
/// With a `boundary` token the text consists of sentences with that token before each and after the last: contexts do not reach back beyond
/// it, and the first one is not predicted. Counts are exact. Throws Error for a token outside the vocabulary.
std::vector<double> witten_bell(std::span<std::int32_t const> train, std::span<std::int32_t const> held_out, Index vocabulary,
                                int highest = 6, std::optional<std::int32_t> boundary = {});

}  // namespace heed
