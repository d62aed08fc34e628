// e_ij = (W q_i)_j: the query alone says where to look

#include <cmath>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct Location : Score {
  Location(Scope const& scope, HeadShape const& shape)
      : matrix(scope.parameter("matrix", {shape.heads, shape.context, shape.width},
                               Initial::normal(1 / std::sqrt(static_cast<double>(shape.width))))) {}
  Tensor operator()(Tensor const& query, Tensor const& key) const override {
    std::int64_t const keys = key.size(2);
    if (keys > matrix.size(1))
      throw Error(fmt::format("location: {} keys, but it has learned scores for {} places only", keys, matrix.size(1)));
    return matmul(query, slice(matrix, 1, 0, keys), false, true);
  }

  Tensor matrix;  // [H, context, d]
};

Declared<Score> const declared{
    {"location", "(W q_i)_j", "Luong et al. 2015", "n m d", "everywhere",
     [](Scope const& scope, AttentionSettings const&, HeadShape const& shape) { return std::make_unique<Location>(scope, shape); },
     Compares::any_widths}};

}  // namespace

}  // namespace heed
