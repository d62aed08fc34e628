// e_ij = β · q_i·k_j / (‖q_i‖ ‖k_j‖ + 1e-8), β learned from 10

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/attention/pair_score.hpp"

namespace heed {

namespace {

/// ‖x‖ of each head, x [B, T, groups · d] → [B, heads, T]; the gradient at the zero vector is 0.
Tensor lengths(Tensor const& x, std::int64_t heads, std::int64_t groups) {
  std::int64_t const batch = x.size(0), rows = x.size(1);
  Tensor const apart = reshape(x, {batch, rows, groups, x.size(2) / groups});
  Tensor const square = sum_of_squares(apart, {-1});
  Tensor const some = square.detach() > 0;
  Tensor const of_groups = permute(some * sqrt(where(some, square, Tensor::ones({}, x.dtype()))), {0, 2, 1});
  if (groups == heads) return of_groups;
  return reshape(expand(unsqueeze(of_groups, 2), {batch, groups, heads / groups, rows}), {batch, heads, rows});
}

struct CosineScore : Score {
  CosineScore(Scope const& scope, HeadShape const& shape)
      : sharpness(scope.parameter("sharpness", {shape.heads}, Initial::constant(10), WeightDecay::off)) {}
  std::optional<FusedScore> fused(Tensor const& query, Tensor const& key, HeadGroups const& heads) const override {
    static auto const finish = pair_finish([](auto s, auto const& at) { return at.parameter * s / (at.query * at.key + like(1e-8, s)); });
    FusedScore score{query};
    score.finish = finish;
    score.parameter = unsqueeze(sharpness, 1);
    score.of_query = lengths(query, heads.heads, heads.heads);
    score.of_key = lengths(key, heads.heads, heads.groups);
    return score;
  }

  Tensor sharpness;  // [H]
};

Declared<ScoreKind> const declared{
    {"cosine", "β q_i·k_j / (‖q_i‖ ‖k_j‖)", "Graves et al. 2014", "n m d", "everywhere but at zero vectors",
     [](Scope const& scope, AttentionSettings const&, HeadShape const& shape) { return std::make_unique<CosineScore>(scope, shape); }}};

}  // namespace

}  // namespace heed
