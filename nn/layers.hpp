#pragma once

#include <optional>
#include <string>
#include <utility>

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/softmax.hpp"
#include "nn/parameters.hpp"
#include "nn/pass.hpp"

namespace heed {

/// y = x Wᵀ + b (+ a residual of y's shape), weight [out, in], bias [out].
struct Linear {
  Linear(Scope const& scope, Index in, Index out, bool with_bias, Initial const& initial = Initial::weight());
  Tensor operator()(Tensor const& x, Tensor const& residual = {}) const { return linear(x, weight, bias, residual); }

  Tensor weight, bias;
};

inline std::optional<Linear> linear_if(bool wanted, Scope const& scope, Index in, Index out, bool with_bias) {
  return wanted ? std::optional<Linear>(std::in_place, scope, in, out, with_bias) : std::nullopt;
}

/// RMS norm of each stretch of the weight's width: x [B, T, ·], weight [width].
Tensor norm_of_heads(Tensor const& x, Tensor const& weight);

/// A causal depthwise convolution over the last w tokens (So et al. 2021).
struct ShortConvolution {
  ShortConvolution(Scope const& scope, Index channels, Index taps);
  /// x [B, T, channels]; after the w − 1 tokens that `tail` keeps, unless it is null.
  Tensor operator()(Tensor const& x, Tensor* tail = nullptr) const;

  Tensor weight;  // [channels, w]
};

/// Of queries, keys and values.
struct ShortConvolutions {
  /// After these projections.
  ShortConvolutions(Scope const& scope, Index taps, Linear const& of_query, Linear const& of_key, Linear const& of_value)
      : query(scope.at("query"), of_query.weight.size(0), taps),
        key(scope.at("key"), of_key.weight.size(0), taps),
        value(scope.at("value"), of_value.weight.size(0), taps) {}

  ShortConvolution query, key, value;
};

/// Rows of weight [count, width] by index.
struct Embedding {
  Embedding(Scope const& scope, Index count, Index width)
      : weight(scope.parameter("weight", {count, width}, Initial::weight(), WeightDecay::on)) {}
  Tensor operator()(Tensor const& tokens) const { return embedding(weight, tokens); }

  Tensor weight;
};

struct NormSettings : Settings {
  std::string kind = "layer";     ///< layer (Ba et al. 2016) or rms (Zhang & Sennrich 2019)
  std::string placement = "pre";  ///< pre: x + f(norm x), and a last norm; post: norm(x + f x) (Vaswani et al. 2017)
  std::vector<Field> fields() override;
};

/// Layer norm or RMS norm over the last axis, eps 1e-5; RMS norm has no bias.
struct Norm {
  Norm(Scope const& scope, Index width, std::string const& kind);
  Tensor operator()(Tensor const& x) const { return rms ? rms_norm(x, weight) : layer_norm(x, weight, bias); }

  bool rms;
  Tensor weight, bias;
};

/// A residual branch: x + f(norm x), or norm(x + f x) with post-norm; in training with dropout.
struct Residual {
  /// `branch`: the name of f, for dropout's stream.
  Residual(Scope const& scope, std::string const& norm_name, std::string const& branch, Index width, NormSettings const& settings,
           double dropout)
      : path(scope.path() + "." + branch),
        pre(settings.placement == "pre"),
        rate(dropout),
        norm(scope.at(norm_name), width, settings.kind) {}
  /// f(y, residual), y [B, T, width]: the branch, whose last product adds the residual if it is defined.
  template <class F>
  Tensor operator()(Tensor const& x, Pass const& pass, F const& f) const {
    auto const added = [&](Tensor const& y) { return pass.drops(rate) ? x + pass.dropout(f(y, Tensor()), rate, path) : f(y, x); };
    return pre ? added(norm(x)) : norm(added(x));
  }

  std::string path;
  bool pre;
  double rate;
  Norm norm;
};

std::vector<std::string> activation_names();

/// down(f(up x)), or swiglu's down(silu(gate x) · up x) (Shazeer 2020), plus a residual if defined. In a graph for second derivatives some
/// rows at a time (by_rows). `residual_scale`: factor on down's initial standard deviation.
struct Mlp {
  Mlp(Scope const& scope, Index width, Index hidden, std::string activation_name, bool with_bias, double residual_scale);
  Tensor operator()(Tensor const& x, Tensor const& residual = {}) const;

  std::string part, activation;
  std::optional<Linear> gate;
  Linear up, down;
};

}  // namespace heed
