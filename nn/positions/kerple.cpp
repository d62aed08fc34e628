// e_ij − r1_h · log(1 + r2_h |i − j|), r1 and r2 positive: learned, one a head and layer

#include <cmath>

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/position.hpp"

namespace heed {

namespace {

struct Logarithm : AttentionPosition {
  Logarithm(Scope const& scope, Index heads, Index)
      : raw(scope.at("relative")
                .parameter("kerple", {2, heads}, Initial::constant(std::log(std::expm1(1.0))),  // r1 = r2 = 1
                           WeightDecay::off)) {}
  Tensor relative(Index queries, Index keys, Visibility const& visibility) const override {
    std::vector<double> distances;
    for (Index distance = 1 - queries; distance < keys; ++distance)
      distances.push_back(static_cast<double>(std::abs(distance - visibility.offset)));
    Tensor const r = softplus(raw), distance = Tensor::of(distances, {queries + keys - 1}, raw.dtype());
    auto const of_heads = [&](Index row) { return transpose(slice(r, 0, row, row + 1)); };  // [H, 1]
    return -(of_heads(0) * log1p(of_heads(1) * distance));
  }

  Tensor raw;  // [2, H]
};

Declared<PositionKind> const kerple_position{
    {"kerple", "e_ij − r1_h log(1 + r2_h |i − j|)", "Chi et al. 2022", "defined", makes<PositionOfLayers<Logarithm>>}};

}  // namespace

}  // namespace heed
