// a_ij = max(e^{e_ij} − 1, 0) / Σ_j |e^{e_ij} − 1|: scores below 0 get nothing, and rows need not sum to one

#include <limits>

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

constexpr double least_sum = 1e-8;

struct Softpick : Align {
  Tensor operator()(Tensor const& scores, Tensor const&, Visibility const& visibility) const override {
    if (scores.size(-1) == 0) return scores;
    Tensor const mask = visibility.mask(scores.size(-2), scores.size(-1), scores.dtype());
    // All divided by e^m, m the largest score or 0, so that nothing overflows.
    constexpr double infinity = std::numeric_limits<double>::infinity();
    Tensor const m = clamp(max(masked_fill(scores.detach(), 1 - mask, -infinity), {-1}, true), 0, infinity);
    Tensor const above = (exp(masked_fill(scores - m, 1 - mask, 0)) - exp(-m)) * mask;
    return relu(above) / (sum(abs(above), {-1}, true) + least_sum);
  }
};

Declared<Align> const declared{{"softpick", "max(e^{e_ij} − 1, 0) / Σ_j |e^{e_ij} − 1|", "Zuhri et al. 2025", "n m",
                                "everywhere but where a score is 0",
                                [](Scope const&, AttentionSettings const&, HeadShape const&) { return std::make_unique<Softpick>(); }}};

}  // namespace

}  // namespace heed
