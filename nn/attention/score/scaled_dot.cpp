// e_ij = q_i · k_j, or s · q_i · k_j

#include <algorithm>
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

/// s_i = log n_i/(√d log n), n_i the number of keys that query i sees, n the most in training: the logarithmic scale of Chiang and Cholak
/// 2022 (arXiv 2202.12172), 1/√d at length n.
struct LengthScale : Score {
  explicit LengthScale(HeadShape const& shape)
      : factor(shape.scale_factor /
               (std::sqrt(static_cast<double>(shape.width)) * std::log(std::max(2.0, static_cast<double>(shape.context))))) {}
  void fill(AttentionForm& form, AttentionInputs& in) const override {
    Tensor const seen = form.visibility.counts(in.query.size(1), in.key.size(1), in.query.dtype());  // [B or 1, 1, n, 1]
    in.query = in.query * squeeze(log(clamp(seen, 1, 1e18)), 1);
    form.scale = factor;
  }

  double factor;
};

std::unique_ptr<Score> make(Scope const& scope, AttentionSettings const& settings, HeadShape const& shape) {
  if (settings.scale == "learned") return std::make_unique<LearnedScale>(scope, shape);
  if (settings.scale == "log_length") return std::make_unique<LengthScale>(shape);
  return std::make_unique<ScaledDot>(fixed_scale(settings.scale, static_cast<double>(shape.width)).value() * shape.scale_factor);
}

Declared<ScoreKind> const dot_score{{"dot", "q_i · k_j", "Luong et al. 2015", "n m d", "everywhere", makes<Score>}};
Declared<ScoreKind> const scaled_dot_score{{"scaled_dot", "s · q_i · k_j, s = 1/√d", "Vaswani et al. 2017", "n m d", "everywhere", make}};

}  // namespace

}  // namespace heed
