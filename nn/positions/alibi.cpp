// e_ij − m_h |i − j|, m_h = 2^{−8(h+1)/H}

#include <cmath>

#include "nn/position.hpp"

namespace heed {

namespace {

struct Slopes : AttentionPosition {
  Slopes(Index count, DType type) : heads(count), dtype(type) {}
  Tensor relative(Index queries, Index keys, Visibility const& visibility) const override {
    std::vector<double> values;
    for (Index h = 0; h < heads; ++h) {
      double const slope = std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads));
      for (Index distance = 1 - queries; distance < keys; ++distance)
        values.push_back(-slope * static_cast<double>(std::abs(distance - visibility.offset)));
    }
    return Tensor::of(values, {heads, queries + keys - 1}, dtype);
  }

  Index heads;
  DType dtype;
};

struct Alibi : Position {
  std::unique_ptr<AttentionPosition> in_attention(Scope const& scope, Index heads, Index) const override {
    return std::make_unique<Slopes>(heads, scope.dtype());
  }
};

Declared<PositionKind> const alibi_position{{"alibi", "e_ij − |i − j| / 2^{8(h+1)/H}", "Press et al. 2022", "defined", makes<Alibi>}};

}  // namespace

}  // namespace heed
