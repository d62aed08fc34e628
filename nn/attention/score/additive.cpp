// e_ij = vᵀ tanh(q_i + k_j), the query and the key already carrying their projections W_a and U_a

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct Additive : Score {
  Additive(Scope const& scope, AttentionSettings const&, HeadShape const& shape)
      : vector(scope.parameter("vector", {shape.heads, shape.width}, Initial::preserving(shape.width), WeightDecay::on)) {}
  void fill(AttentionForm& form, AttentionInputs& in) const override { form.sum = additive_sum(), in.weight = vector; }

  Tensor vector;  // [H, d]
};

Declared<ScoreKind> const additive_score{
    {"additive", "vᵀ tanh(q_i + k_j)", "Bahdanau et al. 2015", "n m d", "everywhere", makes<Additive>, Compares::projections}};

}  // namespace

}  // namespace heed
