// a_i = 1.5-entmax(e_i): between softmax and sparsemax

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct Entmax15 : Align {
  Tensor operator()(Tensor const& scores, Tensor const&, Visibility const& visibility) const override {
    return entmax15(scores, visibility.mask(scores.size(-2), scores.size(-1), scores.dtype()));
  }
};

Declared<Align> const declared{{"entmax15", "max(e_ij/2 − τ_i, 0)², Σ_j = 1", "Peters et al. 2019", "n m log m",
                                "everywhere, once: its derivative has corners where the support changes",
                                [](Scope const&, AttentionSettings const&, HeadShape const&) { return std::make_unique<Entmax15>(); },
                                Compares::same_width, true}};

}  // namespace

}  // namespace heed
