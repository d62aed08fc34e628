// e_ij + table[bucket(j − i), h]; the table is shared by the layers. It is an embedding of distances, and decays as one.

#include <algorithm>
#include <cmath>

#include "autograd/ops/index.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/position.hpp"

namespace heed {

namespace {

constexpr Index all_buckets = 32;
constexpr Index farthest = 128;

struct Buckets : AttentionPosition {
  explicit Buckets(Tensor shared) : table(std::move(shared)) {}
  Tensor relative(Index queries, Index keys, Visibility const& visibility) const override {
    std::vector<Index> buckets;
    for (Index distance = 1 - queries; distance < keys; ++distance)
      buckets.push_back(t5_bucket(distance - visibility.offset, visibility.causal));
    return transpose(embedding(table, Tensor::of(buckets, {queries + keys - 1})));
  }

  Tensor table;  // [32, H]
};

struct T5 : Position {
  T5(Scope const& scope, PositionShape const& shape, Settings const&)
      : table(scope.at("relative").parameter("bias", {all_buckets, shape.heads}, Initial::normal(0.02), WeightDecay::on)) {}
  std::unique_ptr<AttentionPosition> in_attention(Scope const&, Index, Index) const override { return std::make_unique<Buckets>(table); }

  Tensor table;
};

Declared<PositionKind> const t5_position{
    {"t5", "e_ij + table[bucket(j − i), h]", "Raffel et al. 2020", "defined, in the last bucket", makes<T5>}};

}  // namespace

Index t5_bucket(Index distance, bool causal) {
  Index const buckets = causal ? all_buckets : all_buckets / 2;
  Index const base = !causal && distance > 0 ? buckets : 0;
  Index const n = causal ? std::max<Index>(-distance, 0) : std::abs(distance);
  Index const exact = buckets / 2;
  if (n < exact) return base + n;
  double const share =
      std::log(static_cast<double>(n) / static_cast<double>(exact)) / std::log(static_cast<double>(farthest) / static_cast<double>(exact));
  return base + std::min(exact + static_cast<Index>(share * static_cast<double>(buckets - exact)), buckets - 1);
}

}  // namespace heed
