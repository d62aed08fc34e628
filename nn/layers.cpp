#include "nn/layers.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "autograd/error.hpp"
#include "autograd/graph_memory.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

Linear::Linear(Scope const& scope, Index in, Index out, bool with_bias, Initial const& initial)
    : weight(scope.parameter("weight", {out, in}, initial, WeightDecay::on)),
      bias(with_bias ? scope.parameter("bias", {out}, Initial::constant(0), WeightDecay::off) : Tensor()) {}

Tensor norm_of_heads(Tensor const& x, Tensor const& weight) {
  Index const width = weight.size(0);
  Tensor const apart = reshape(x, {x.size(0), x.size(1), x.size(2) / width, width});
  return reshape(rms_norm(apart, weight), {x.size(0), x.size(1), x.size(2)});
}

ShortConvolution::ShortConvolution(Scope const& scope, Index channels, Index taps) {
  Initial const initial = Initial::drawn([spread = 1 / std::sqrt(to_double(taps))](double u) { return (2 * u - 1) * spread; });
  weight = scope.parameter("weight", {channels, taps}, initial, WeightDecay::on);
}

Tensor ShortConvolution::operator()(Tensor const& x, Tensor* tail) const {
  if (tail == nullptr) return convolve_causal(x, weight);
  Index const before = weight.size(1) - 1;
  Tensor const all = concatenate({tail->defined() ? *tail : Tensor::zeros({x.size(0), before, x.size(2)}, x.dtype()), x}, 1);
  *tail = slice(all, 1, all.size(1) - before, all.size(1));
  return slice(convolve_causal(all, weight), 1, before, all.size(1));
}

std::vector<Field> NormSettings::fields() {
  return {
      field(&kind, "kind", "layer norm, or RMS norm without mean and bias").one_of({"layer", "rms"}),
      field(&placement, "place", "pre: x + f(norm x), and a last norm; post: norm(x + f x)").one_of({"pre", "post"}),
  };
}

Norm::Norm(Scope const& scope, Index width, std::string const& kind)
    : rms(kind == "rms"),
      weight(scope.parameter("weight", {width}, Initial::constant(1), WeightDecay::off)),
      bias(rms ? Tensor() : scope.parameter("bias", {width}, Initial::constant(0), WeightDecay::off)) {}

namespace {

/// By name; swiglu is a gate, not a function of one argument.
constexpr std::pair<char const*, Tensor (*)(Tensor const&)> activations[]{
    {"gelu", gelu}, {"gelu_exact", gelu_exact}, {"relu", relu}, {"silu", silu}, {"swiglu", nullptr}};

std::vector<Linear*> linears_of(Mlp& mlp) {
  if (mlp.gate) return {&*mlp.gate, &mlp.up, &mlp.down};
  return {&mlp.up, &mlp.down};
}

Tensor activate(std::string const& name, Tensor const& x) {
  auto const* const found = std::ranges::find(activations, name, [](auto const& each) { return std::string_view(each.first); });
  if (found == std::end(activations)) throw Error("activation: '" + name + "' is not known");
  return found->second(x);
}

Tensor forward(Mlp const& mlp, Tensor const& x, Tensor const& residual) {
  return mlp.down(mlp.gate ? silu((*mlp.gate)(x)) * mlp.up(x) : activate(mlp.activation, mlp.up(x)), residual);
}

/// The same without a residual, the weights inputs like x.
Tensor forward_by_rows(Mlp mlp, Tensor const& x) {
  std::vector<Tensor> inputs{x};
  for (Linear const* const layer : linears_of(mlp)) {
    inputs.push_back(layer->weight);
    if (layer->bias.defined()) inputs.push_back(layer->bias);
  }
  auto const of = [mlp](std::vector<Tensor> const& in) {
    Mlp given = mlp;
    auto next = in.begin() + 1;
    for (Linear* const layer : linears_of(given)) {
      layer->weight = *next++;
      if (layer->bias.defined()) layer->bias = *next++;
    }
    return forward(given, in[0], {});
  };
  return by_rows(of, inputs);
}

}  // namespace

std::vector<std::string> activation_names() {
  return mapped(activations, [](auto const& each) { return std::string(each.first); });
}

Mlp::Mlp(Scope const& scope, Index width, Index hidden, std::string activation_name, bool with_bias, double residual_scale)
    : part(scope.path()),
      activation(std::move(activation_name)),
      gate(linear_if(activation == "swiglu", scope.at("gate"), width, hidden, with_bias)),
      up(scope.at("up"), width, hidden, with_bias),
      down(scope.at("down"), hidden, width, with_bias, Initial::weight(residual_scale)) {}

Tensor Mlp::operator()(Tensor const& x, Tensor const& residual) const {
  ModelPart const here(part);
  if (!for_second_derivatives()) return forward(*this, x, residual);
  Tensor const y = forward_by_rows(*this, x);
  return residual.defined() ? y + residual : y;
}

}  // namespace heed
