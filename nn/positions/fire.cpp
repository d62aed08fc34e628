// e_ij + MLP(ψ(i − j)/ψ(max(i, |L c|)))_h, ψ(x) = log(|a x| + 1): distances relative to the query's position, so that longer contexts give
// no new inputs. L, a and the MLP (1 → 32 → H, relu) are learned and shared by the layers; c is the trained context.

#include <algorithm>
#include <cmath>

#include "autograd/attention/attention.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/position.hpp"

namespace heed {

namespace {

constexpr Index hidden = 32;

struct Interpolation : AttentionPosition {
  Interpolation(Scope const& scope, double trained, Index heads)
      : context(trained),
        steepness(scope.parameter("c", {}, Initial::constant(0.1), WeightDecay::off)),
        multiplier(scope.parameter("multiplier", {}, Initial::constant(1), WeightDecay::off)),
        up(scope.at("up").parameter("weight", {hidden, 1}, Initial::normal(1), WeightDecay::on)),
        up_bias(scope.at("up").parameter("bias", {hidden}, Initial::normal(1), WeightDecay::off)),
        down(scope.at("down").parameter("weight", {heads, hidden}, Initial::normal(0.02), WeightDecay::on)),
        down_bias(scope.at("down").parameter("bias", {heads}, Initial::constant(0), WeightDecay::off)) {}

  /// If no query stands at |L c| or further on, the bias is one of distances. L starts at 1 and may sink: then scores are composed.
  bool is_by_distance(Index queries, Visibility const& visibility) const override { return queries_before(queries, visibility) == queries; }
  Tensor relative(Index queries, Index keys, Visibility const& visibility) const override {
    return transpose(perceptron(shares_before(queries, keys, visibility)));
  }
  Tensor bias(Tensor const& query, Index keys, Visibility const& visibility) const override {
    Index const queries = query.size(2), before = queries_before(queries, visibility), rest = queries - before;
    std::vector<Tensor> parts;
    if (before > 0) parts.push_back(relative_bias(relative(before, keys, visibility), before, keys));
    if (rest > 0) {
      Tensor const y = perceptron(reshape(shares_from(before, queries, keys, visibility), {rest * keys, 1}));  // [n·m, H]
      parts.push_back(reshape(transpose(y), {1, y.size(1), rest, keys}));
    }
    return concatenate(parts, 2);
  }
  Tensor kinks(Index queries, Index keys, Visibility const& visibility) const override {
    return before_relu(reshape(shares_from(0, queries, keys, visibility), {queries * keys, 1}));
  }

 private:
  Tensor threshold() const { return abs(scale(multiplier, context)); }  // |L c|
  Tensor psi(Tensor const& x) const { return log1p(abs(steepness * x)); }
  Tensor before_relu(Tensor const& shares) const { return linear(shares, up, up_bias); }
  Tensor perceptron(Tensor const& shares) const { return linear(relu(before_relu(shares)), down, down_bias); }

  /// How many of the queries stand before |L c|.
  Index queries_before(Index queries, Visibility const& visibility) const {
    double const before = std::ceil(threshold().item()) - static_cast<double>(visibility.first_key + visibility.offset);
    return static_cast<Index>(std::clamp(before, 0.0, static_cast<double>(queries)));
  }
  /// ψ(i − j)/ψ(|L c|) by distance, as relative_bias() counts it: [n + m − 1, 1].
  Tensor shares_before(Index queries, Index keys, Visibility const& visibility) const {
    std::vector<double> back;
    for (Index ahead = 1 - queries; ahead < keys; ++ahead)
      back.push_back(static_cast<double>(std::max<Index>(visibility.offset - ahead, 0)));
    return psi(Tensor::of(back, {queries + keys - 1, 1}, up.dtype())) / (psi(threshold()) + 1e-6);
  }
  /// ψ(i − j)/ψ(max(i, |L c|)) of the queries from the one numbered `first` on: [n, m].
  Tensor shares_from(Index first, Index queries, Index keys, Visibility const& visibility) const {
    std::vector<double> positions;
    Tensor back({queries - first, keys}, DType::float64);
    auto distance = back.mutable_data<double>().begin();
    for (Index i = visibility.offset + first; i < visibility.offset + queries; ++i) {
      positions.push_back(static_cast<double>(visibility.first_key + i));
      for (Index j = 0; j < keys; ++j) *distance++ = static_cast<double>(std::max<Index>(i - j, 0));
    }
    Tensor const far = maximum(Tensor::of(positions, {queries - first, 1}, up.dtype()), threshold());
    return psi(back.to(up.dtype())) / (psi(far) + 1e-6);
  }

  double context;
  Tensor steepness, multiplier;         // []
  Tensor up, up_bias, down, down_bias;  // [32, 1], [32], [H, 32], [H]
};

/// The layers share one.
struct Fire : Position {
  Fire(Scope const& scope, PositionShape const& shape, Settings const&)
      : shared(scope.at("relative.fire"), static_cast<double>(shape.context), shape.heads) {}
  std::unique_ptr<AttentionPosition> in_attention(Scope const&, Index, Index) const override {
    return std::make_unique<Interpolation>(shared);
  }

  Interpolation shared;
};

Declared<PositionKind> const fire_position{{"fire", "e_ij + MLP(ψ(i − j)/ψ(max(i, |L c|)))_h, ψ(x) = log(|a x| + 1)", "Li et al. 2023",
                                            "defined", makes<Fire>, PositionActsOn::scores, true}};

}  // namespace

}  // namespace heed
