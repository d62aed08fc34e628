// e_ij = β · q_i·k_j / (‖q_i‖ ‖k_j‖ + 1e-8), β learned from 10

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

/// ‖x‖ over the last axis, kept; the gradient at the zero vector is 0.
Tensor length(Tensor const& x) {
  Tensor const square = sum(x * x, {-1}, true);
  Tensor const some = square.detach() > 0;
  return some * sqrt(where(some, square, Tensor::ones({}, x.dtype())));
}

struct Cosine : Score {
  Cosine(Scope const& scope, HeadShape const& shape) : sharpness(scope.parameter("sharpness", {shape.heads}, Initial::constant(10))) {}
  Tensor operator()(Tensor const& query, Tensor const& key) const override {
    Tensor const lengths = matmul(length(query), length(key), false, true);  // [B, H, n, m]
    return reshape(sharpness, {-1, 1, 1}) * matmul(query, key, false, true) / (lengths + 1e-8);
  }
  std::optional<FusedScore> fused(Tensor const& query, std::int64_t) const override {
    return FusedScore{AttentionForm::Score::cosine, 1, query, sharpness};
  }

  Tensor sharpness;  // [H]
};

Declared<Score> const declared{
    {"cosine", "β q_i·k_j / (‖q_i‖ ‖k_j‖)", "Graves et al. 2014", "n m d", "everywhere but at zero vectors",
     [](Scope const& scope, AttentionSettings const&, HeadShape const& shape) { return std::make_unique<Cosine>(scope, shape); }}};

}  // namespace

}  // namespace heed
