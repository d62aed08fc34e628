// e_ij = s · q_i · k_j

#include <cmath>

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct ScaledDot : Score {
  explicit ScaledDot(double s) : factor(s) {}
  void fill(AttentionForm& form, AttentionInputs&) const override { form.scale = factor; }

  double factor;
};

/// s is a parameter, one a head.
struct LearnedScale : Score {
  LearnedScale(Scope const& scope, HeadShape const& shape)
      : scale(scope.parameter("scale", {shape.heads}, Initial::constant(1 / std::sqrt(static_cast<double>(shape.width))),
                              WeightDecay::off)) {}
  void fill(AttentionForm& form, AttentionInputs& in) const override {
    Shape const shape = in.query.shape();
    Tensor const apart = reshape(in.query, {shape[0], shape[1], form.heads, shape[2] / form.heads});
    in.query = reshape(apart * unsqueeze(scale, 1), {shape[0], shape[1], shape[2]});
  }

  Tensor scale;  // [H]
};

std::unique_ptr<Score> make(Scope const& scope, AttentionSettings const& settings, HeadShape const& shape) {
  if (settings.scale == "learned") return std::make_unique<LearnedScale>(scope, shape);
  return std::make_unique<ScaledDot>(fixed_scale(settings.scale, static_cast<double>(shape.width)).value() * shape.scale_factor);
}

Declared<ScoreKind> const scaled_dot_score{{"scaled_dot", "s · q_i · k_j, s = 1/√d", "Vaswani et al. 2017", "n m d", "everywhere", make}};

}  // namespace

}  // namespace heed
