// e_ij = β · q_i·k_j / (‖q_i‖ ‖k_j‖ + 1e-8), β learned from 10

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct Cosine : Score {
  Cosine(Scope const& scope, HeadShape const& shape) : sharpness(scope.parameter("sharpness", {shape.heads}, Initial::constant(10))) {}
  Tensor operator()(Tensor const& query, Tensor const& key) const override { return cosine_scores(query, key, sharpness); }
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
