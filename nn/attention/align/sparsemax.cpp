// a_i = the point of the simplex that is nearest to e_i

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct Sparsemax : Align {
  Tensor operator()(Tensor const& scores, Tensor const&, Visibility const& visibility) const override {
    return sparsemax(scores, visibility.mask(scores.size(-2), scores.size(-1), scores.dtype()));
  }
};

Declared<Align> const declared{
    {"sparsemax", "max(e_ij − τ_i, 0), Σ_j = 1", "Martins & Astudillo 2016", "n m log m", "everywhere but where the support changes",
     [](Scope const&, AttentionSettings const&, HeadShape const&) { return std::make_unique<Sparsemax>(); }, Compares::same_width, true}};

}  // namespace

}  // namespace heed
