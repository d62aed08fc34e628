// e_ij + q_i · r_{j−i} / √d, distances clipped at 16; r is shared by the heads of a layer

#include <algorithm>
#include <cmath>

#include "nn/position.hpp"

namespace heed {

namespace {

constexpr std::int64_t clip = 16;

struct RelativeKeys : AttentionPosition {
  RelativeKeys(Scope const& scope, std::int64_t width)
      : keys_table(scope.at("relative").parameter("key", {2 * clip + 1, width}, Initial::normal(0.02))) {}
  bool is_by_distance() const override { return false; }
  Tensor bias(Tensor const& query, std::int64_t keys, Visibility const& visibility) const override {
    // Each query is multiplied with the 33 vectors once; then every pair takes the product of its distance.
    Tensor const products =
        scale(matmul(query, keys_table, false, true), 1 / std::sqrt(static_cast<double>(query.size(3))));  // [B, H, n, 33]
    std::vector<std::int64_t> row;
    for (std::int64_t i = visibility.offset; i < visibility.offset + query.size(2); ++i) {
      for (std::int64_t j = 0; j < keys; ++j) row.push_back(std::clamp(j - i, -clip, clip) + clip);
    }
    std::vector<std::int64_t> index;
    for (std::int64_t copy = 0; copy < query.size(0) * query.size(1); ++copy) index.insert(index.end(), row.begin(), row.end());
    return gather(products, -1, Tensor::of(index, {query.size(0), query.size(1), query.size(2), keys}));
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
