// e_ij + q_i · r_{j−i} / √d, distances clipped at 16; r is shared by the heads of a layer

#include <cmath>

#include "autograd/operations/elementwise.hpp"
#include "autograd/operations/product.hpp"
#include "nn/position.hpp"

namespace heed {

namespace {

constexpr std::int64_t clip = 16;

struct RelativeKeys : AttentionPosition {
  RelativeKeys(Scope const& scope, std::int64_t width)
      : keys_table(scope.at("relative").parameter("key", {2 * clip + 1, width}, Initial::normal(0.02))) {}
  Tensor near(Tensor const& query) const override {
    return scale(matmul(query, keys_table, false, true), 1 / std::sqrt(static_cast<double>(query.size(3))));  // [B, H, n, 33]
  }

  Tensor keys_table;  // [33, d]
};

struct Shaw : Position {
  std::unique_ptr<AttentionPosition> in_attention(Scope const& scope, std::int64_t, std::int64_t width) const override {
    return std::make_unique<RelativeKeys>(scope, width);
  }
};

DeclaredPosition const declared{
    {"shaw", "e_ij + q_i · r_{j−i} / √d", "Shaw et al. 2018", "goes on, clipped at 16",
     [](Scope const&, PositionShape const&, Settings const&) -> std::unique_ptr<Position> { return std::make_unique<Shaw>(); }}};

}  // namespace

}  // namespace heed
