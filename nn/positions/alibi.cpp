// e_ij − m_h |i − j|, m_h = 2^{−8(h+1)/H}

#include <cmath>

#include "nn/position.hpp"

namespace heed {

namespace {

struct Slopes : AttentionPosition {
  Slopes(Scope const& scope, Index count, Index) : heads(count), dtype(scope.dtype()) {}
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

Declared<PositionKind> const alibi_position{
    {"alibi", "e_ij − |i − j| / 2^{8(h+1)/H}", "Press et al. 2022", "defined", makes<PositionOfLayers<Slopes>>}};

}  // namespace

}  // namespace heed
