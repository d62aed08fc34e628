// e_ij = β · q_i·k_j / (‖q_i‖ ‖k_j‖ + 1e-8), β learned from 10

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/attention/pair_score.hpp"

namespace heed {

namespace {

/// ‖x‖ of each head, x [B, T, groups · d] → [B, heads, T]; the gradient at the zero vector is 0.
Tensor lengths(Tensor const& x, Index heads, Index groups) {
  Index const batch = x.size(0), rows = x.size(1);
  Tensor const apart = reshape(x, {batch, rows, groups, x.size(2) / groups});
  Tensor const square = sum_of_squares(apart, {-1});
  Tensor const some = square.detach() > 0;
  return squeeze(heads_of_groups(some * sqrt(where(some, square, Tensor::ones({}, x.dtype()))), heads, groups), 3);
}

struct CosineScore : Score {
  CosineScore(Scope const& scope, AttentionSettings const&, HeadShape const& shape)
      : sharpness(scope.parameter("sharpness", {shape.heads}, Initial::constant(10), WeightDecay::off)) {}
  void fill(AttentionForm& form, AttentionInputs& in) const override {
    static auto const finish = pair_finish([](auto s, auto const& at) { return at.parameter * s / (at.query * at.key + like(1e-8, s)); });
    form.finish = finish;
    in.parameter = unsqueeze(sharpness, 1);
    in.of_query = lengths(in.query, form.heads, form.heads);
    in.of_key = lengths(in.key, form.heads, form.groups());
  }

  Tensor sharpness;  // [H]
};

Declared<ScoreKind> const cosine_score{
    {"cosine", "β q_i·k_j / (‖q_i‖ ‖k_j‖)", "Graves et al. 2014", "n m d", "except at zero vectors", makes<CosineScore>}};

}  // namespace

}  // namespace heed
