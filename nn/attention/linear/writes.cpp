// Writes of linear attention. Another one may stand in a file of its own.

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "nn/attention/linear/parts.hpp"

namespace heed {

namespace {

Declared<WriteKind> const add_write{{"add", "v_t", "Katharopoulos et al. 2020", makes<StateWrite>}};

struct StepWrite : StateWrite {
  void fill(LinearInputs& in, Tensor const&, Tensor const& step) const override { in.value = times_per_head(in.value, step); }
};

Declared<WriteKind> const step_write{{"step", "Δ_t v_t, Δ_t the decay's softplus", "Dao & Gu 2024", makes<StepWrite>, {}, true}};

struct DeltaWrite : StateWrite {
  DeltaWrite(Scope const& scope, LinearSettings const& settings, LinearShape const& shape)
      : range(settings.range),
        weight(scope.parameter("weight", {settings.steps * shape.heads, shape.width}, Initial::weight(), WeightDecay::on)),
        bias(scope.parameter("bias", {settings.steps * shape.heads}, Initial::constant(0), WeightDecay::off)) {}
  void fill(LinearInputs& in, Tensor const& x, Tensor const&) const override {
    Tensor const strength = scale(sigmoid(linear(x, weight, bias)), range);  // [B, T, n·H]
    in.erase = times_per_head(in.key, strength);
    in.value = times_per_head(in.value, strength);
  }

  double range;
  Tensor weight, bias;
};

Declared<WriteKind> const delta_write{
    {"delta", "β_t (v_t − S′ᵀ k̂_t), β_t = range · sigmoid(W x)", "Schlag et al. 2021", makes<DeltaWrite>, {"range"}}};

}  // namespace

}  // namespace heed
