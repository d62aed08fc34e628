// a_ij = e^{e_ij} / (e^{s_h} + Σ_j e^{e_ij}): a softmax with one key more, which is not there to be read; its score s_h is learned

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct Sink : Align {
  Sink(Scope const& scope, HeadShape const& shape) : sink(scope.parameter("sink", {shape.heads}, Initial::constant(0))) {}
  Tensor operator()(Tensor const& scores, Tensor const&, Visibility const& visibility) const override {
    return softmax_beside(scores, visibility.mask(scores.size(-2), scores.size(-1), scores.dtype()), sink);
  }

  Tensor sink;  // [H]
};

Declared<Align> const declared{
    {"sink", "e^{e_ij} / (e^{s_h} + Σ_j e^{e_ij})", "Xiao et al. 2023, gpt-oss 2025", "n m", "everywhere",
     [](Scope const& scope, AttentionSettings const&, HeadShape const& shape) { return std::make_unique<Sink>(scope, shape); }}};

}  // namespace

}  // namespace heed
