// a_ij = e^{e_ij} / (1 + Σ_j e^{e_ij}): a head may read nothing

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct Softmax1 : Align {
  Tensor operator()(Tensor const& scores, Tensor const&, Visibility const& visibility) const override {
    Tensor const mask = visibility.mask(scores.size(-2), scores.size(-1), scores.dtype());
    return softmax_beside(scores, mask, Tensor::zeros({scores.size(1)}, scores.dtype()));
  }
};

Declared<Align> const declared{{"softmax1", "e^{e_ij} / (1 + Σ_j e^{e_ij})", "Miller 2023", "n m", "everywhere",
                                [](Scope const&, AttentionSettings const&, HeadShape const&) { return std::make_unique<Softmax1>(); }}};

}  // namespace

}  // namespace heed
