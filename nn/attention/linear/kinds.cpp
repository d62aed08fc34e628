// The features φ, decays and writes of linear attention that there are. Another one may stand in a file of its own.

#include <algorithm>
#include <cmath>

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"
#include "nn/attention/linear/parts.hpp"

namespace heed {

namespace {

Declared<FeatureKind> const identity_feature{{"identity", "x", "", [](Tensor const& x) { return x; }}};
Declared<FeatureKind> const relu_feature{{"relu", "max(x, 0)", "Kasai et al. 2021", [](Tensor const& x) { return relu(x); }}};
Declared<FeatureKind> const elu1_feature{
    {"elu1", "elu(x) + 1", "Katharopoulos et al. 2020", [](Tensor const& x) { return where(x > 0.0, x + 1.0, exp(x)); }}};
Declared<FeatureKind> const l2_feature{{"l2", "x / √(Σx² + 1e-6)", "Yang et al. 2024", [](Tensor const& x) {
                                          auto const d = to_double(x.size(-1));
                                          return rms_norm(x, Tensor::full({x.size(-1)}, 1 / std::sqrt(d), x.dtype()), 1e-6 / d);
                                        }}};
Declared<FeatureKind> const softmax_feature{
    {"softmax", "softmax over the d entries", "Shen et al. 2021", [](Tensor const& x) { return softmax(x); }}};

/// The initial values of `rate`: the logarithm of a uniform number.
Initial initial_rate(DecayStart const& start) {
  return Initial::drawn([low = start.rate[0], high = start.rate[1]](double u) { return std::log(low + (high - low) * u); });
}

/// The initial values of softplus's bias: softplus(bias) is a number whose logarithm is uniform, at least 1e-4.
Initial initial_step(DecayStart const& start) {
  return Initial::drawn([low = std::log(start.step[0]), high = std::log(start.step[1])](double u) {
    return std::log(std::expm1(std::max(std::exp(low + (high - low) * u), 1e-4)));
  });
}

Declared<DecayKind> const no_decay{{"none", "0", "Katharopoulos et al. 2020", makes<StateDecay>}};

struct FixedDecay : StateDecay {
  FixedDecay(Scope const&, LinearSettings const&, LinearShape const& shape) {
    for (Index h = 0; h < shape.heads; ++h) rates.push_back(std::log1p(-std::exp2(-5.0 - to_double(h))));
  }
  Tensor fill(LinearInputs& in, Tensor const& x) const override {
    in.log_decay = expand(Tensor::of(rates, {std::ssize(rates)}, x.dtype()), {x.size(0), x.size(1), std::ssize(rates)});
    return {};
  }

  std::vector<double> rates;
};

Declared<DecayKind> const fixed_decay{{"fixed", "log(1 − 2^(−5−h)), h = 0 … H − 1", "Sun et al. 2023", makes<FixedDecay>}};

struct HeadDecay : StateDecay {
  HeadDecay(Scope const& scope, LinearSettings const& settings, LinearShape const& shape)
      : weight(scope.parameter("weight", {shape.heads, shape.width}, Initial::weight(), WeightDecay::on)),
        bias(scope.parameter("bias", {shape.heads}, initial_step(settings.start), WeightDecay::off)),
        rate(scope.parameter("rate", {shape.heads}, initial_rate(settings.start), WeightDecay::off)) {}
  Tensor fill(LinearInputs& in, Tensor const& x) const override {
    Tensor const step = softplus(linear(x, weight, bias));
    in.log_decay = -(exp(rate) * step);
    return step;
  }

  Tensor weight, bias, rate;
};

Declared<DecayKind> const head_decay{{"head", "−e^rate_h · softplus(W x)_h", "Dao & Gu 2024", makes<HeadDecay>, {"start"}, true}};

struct ChannelDecay : StateDecay {
  ChannelDecay(Scope const& scope, LinearSettings const& settings, LinearShape const& shape)
      : down(scope.at("down").parameter("weight", {settings.rank.value_or(shape.key_width), shape.width}, Initial::weight(),
                                        WeightDecay::on)),
        up(scope.at("up").parameter("weight", {shape.heads * shape.key_width, down.size(0)}, Initial::weight(), WeightDecay::on)),
        bias(scope.at("up").parameter("bias", {shape.heads * shape.key_width}, initial_step(settings.start), WeightDecay::off)),
        rate(scope.parameter("rate", {shape.heads}, initial_rate(settings.start), WeightDecay::off)) {}
  Tensor fill(LinearInputs& in, Tensor const& x) const override {
    Tensor const step = softplus(linear(linear(x, down, {}), up, bias));
    in.log_decay = -times_per_head(step, reshape(exp(rate), {1, 1, rate.size(0)}));
    return {};
  }

  Tensor down, up, bias, rate;
};

Declared<DecayKind> const channel_decay{
    {"channel", "−e^rate_h · softplus(W_up W_down x)", "Yang et al. 2024", makes<ChannelDecay>, {"rank", "start"}}};

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
