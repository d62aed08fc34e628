// e_ij + q_i · r_{j−i} / √d, distances clipped at 16; r is shared by the heads of a layer

#include <cmath>

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/position.hpp"

namespace heed {

namespace {

constexpr Index clip = 16;

struct RelativeKeys : AttentionPosition {
  RelativeKeys(Scope const& scope, Index, Index width)
      : keys_table(scope.at("relative").parameter("key", {2 * clip + 1, width}, Initial::normal(0.02), WeightDecay::on)) {}
  Tensor near(Tensor const& query, Index heads) const override {
    Index const width = query.size(2) / heads;
    Tensor const table = unsqueeze(transpose(scale(keys_table, 1 / std::sqrt(static_cast<double>(width)))), 0);  // [1, d, 33]
    return reshape(head_product(query, table, heads), {query.size(0), query.size(1), heads, table.size(2)});
  }

  Tensor keys_table;  // [33, d]
};

Declared<PositionKind> const shaw_position{
    {"shaw", "e_ij + q_i · r_{j−i} / √d", "Shaw et al. 2018", "defined, clipped at 16", makes<PositionOfLayers<RelativeKeys>>}};

}  // namespace

}  // namespace heed
