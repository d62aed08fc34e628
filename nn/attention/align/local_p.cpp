// p_i = n_i · sigmoid(v_pᵀ tanh(W_p q_i)); a_ij = softmax over the visible keys with |j − p_i| ≤ D, times exp(−(j − p_i)²/(2σ²)), σ = D/2

#include <cmath>

#include "autograd/operations/attention.hpp"
#include "autograd/operations/elementwise.hpp"
#include "autograd/operations/product.hpp"
#include "autograd/operations/shape.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct LocalP : Align {
  LocalP(Scope const& scope, AttentionSettings const& settings, HeadShape const& shape)
      : window(settings.window),
        windowed(settings.windowed),
        matrix(scope.parameter("position_matrix", {shape.heads, shape.width, shape.width},
                               Initial::normal(1 / std::sqrt(static_cast<double>(shape.width))))),
        vector(scope.parameter("position_vector", {shape.heads, shape.width},
                               Initial::normal(1 / std::sqrt(static_cast<double>(shape.width))))) {}

  /// p_i: [B, H, n, 1].
  Tensor centres(Tensor const& query, Visibility const& visibility, std::int64_t keys) const {
    Tensor const hidden = tanh(matmul(query, matrix, false, true));
    Tensor const where_to = matmul(hidden, reshape(vector, {vector.size(0), vector.size(1), 1}));
    return visibility.counts(query.size(2), keys, query.dtype()) * sigmoid(where_to);
  }

  FusedAlign fused(Tensor const& query, std::int64_t heads, std::int64_t keys, Visibility const& visibility) const override {
    return {windowed ? window : 0, true, window / 2, centres(split_heads(query, heads), visibility, keys)};
  }

  double window;
  bool windowed;
  Tensor matrix;  // [H, d, d]
  Tensor vector;  // [H, d]
};

Declared<Align> const declared{{"local_p", "softmax over |j − p_i| ≤ D, · e^{−(j − p_i)²/(2σ²)}", "Luong et al. 2015", "n (D + d²)",
                                "everywhere but where a key enters the window",
                                [](Scope const& scope, AttentionSettings const& settings, HeadShape const& shape) {
                                  return std::make_unique<LocalP>(scope, settings, shape);
                                }}};

}  // namespace

}  // namespace heed
