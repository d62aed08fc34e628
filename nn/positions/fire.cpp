// e_ij + MLP(ψ(i − j)/ψ(max(i, |L c|)))_h, ψ(x) = log(|a x| + 1): distances relative to how far the query could look back, so that longer
// contexts ask for nothing new. L, a and the perceptron (1 → 32 → H, relu) are learned and shared by the layers; c is the trained context.

#include <algorithm>
#include <cmath>

#include "autograd/operations/elementwise.hpp"
#include "autograd/operations/product.hpp"
#include "autograd/operations/shape.hpp"
#include "nn/position.hpp"

namespace heed {

namespace {

constexpr std::int64_t hidden = 32;

struct Interpolation : AttentionPosition {
  Interpolation(Scope const& scope, double trained, std::int64_t heads)
      : context(trained),
        steepness(scope.parameter("c", {}, Initial::constant(0.1))),
        multiplier(scope.parameter("multiplier", {}, Initial::constant(1))),
        up(scope.at("up").parameter("weight", {hidden, 1}, Initial::normal(1))),
        up_bias(scope.at("up").parameter("bias", {hidden}, Initial::normal(1))),
        down(scope.at("down").parameter("weight", {heads, hidden}, Initial::normal(0.02))),
        down_bias(scope.at("down").parameter("bias", {heads}, Initial::constant(0))) {}

  bool is_by_distance() const override { return false; }
  Tensor bias(Tensor const& query, std::int64_t keys, Visibility const& visibility) const override {
    std::int64_t const queries = query.size(2);
    Tensor const y = linear(relu(before_relu(queries, keys, visibility)), down, down_bias);  // [n·m, H]
    return reshape(transpose(y), {1, y.size(1), queries, keys});
  }
  Tensor corners(std::int64_t queries, std::int64_t keys, Visibility const& visibility) const override {
    return before_relu(queries, keys, visibility);
  }

 private:
  Tensor psi(Tensor const& x) const { return log1p(abs(steepness * x)); }
  Tensor before_relu(std::int64_t queries, std::int64_t keys, Visibility const& visibility) const {
    std::vector<double> places, back;
    for (std::int64_t i = visibility.offset; i < visibility.offset + queries; ++i) {
      places.push_back(static_cast<double>(i));
      for (std::int64_t j = 0; j < keys; ++j) back.push_back(static_cast<double>(std::max<std::int64_t>(i - j, 0)));
    }
    Tensor const far = maximum(Tensor::of(places, {queries, 1}, up.dtype()), abs(scale(multiplier, context)));
    Tensor const share = psi(Tensor::of(back, {queries, keys}, up.dtype())) / (psi(far) + 1e-6);  // [n, m]
    return linear(reshape(share, {queries * keys, 1}), up, up_bias);
  }

  double context;
  Tensor steepness, multiplier;         // []
  Tensor up, up_bias, down, down_bias;  // [32, 1], [32], [H, 32], [H]
};

/// The layers share one.
struct Fire : Position {
  Fire(Scope const& scope, PositionShape const& shape)
      : shared(scope.at("relative.fire"), static_cast<double>(shape.context), shape.heads) {}
  std::unique_ptr<AttentionPosition> in_attention(Scope const&, std::int64_t, std::int64_t) const override {
    return std::make_unique<Interpolation>(shared);
  }

  Interpolation shared;
};

DeclaredPosition const declared{{"fire", "e_ij + MLP(ψ(i − j)/ψ(max(i, |L c|)))_h, ψ(x) = log(|a x| + 1)", "Li et al. 2023", "goes on",
                                 [](Scope const& scope, PositionShape const& shape, Settings const&) -> std::unique_ptr<Position> {
                                   return std::make_unique<Fire>(scope, shape);
                                 },
                                 nullptr, true}};

}  // namespace

}  // namespace heed
