#pragma once

#include <optional>

#include "autograd/operations.hpp"

/// Fused attention (ops/attention.cpp, kernels/attention.cpp).
namespace heed {

/// What fused attention computes, beside the arrays that it is given.
struct AttentionForm {
  enum class Score { dot, cosine, additive };  ///< scale · q·k; sharpness · q·k/(‖q‖‖k‖ + 1e-8); vᵀ tanh(q + k)

  std::int64_t heads = 1;
  Visibility visibility;
  Score score = Score::dot;
  double scale = 1;
  double window = 0;      ///< if > 0: keys at most so far from the query's centre, which is its own position unless centres are given
  bool gaussian = false;  ///< weights times exp(−(j − centre)²/(2 deviation²)), with centres
  double deviation = 1;
  std::optional<WeightDropout> dropout = {};  ///< last, after the Gaussian
};

/// Per head, Σ_j a_ij v_j with a_i the softmax of the scores e_i over the visible keys inside the window, times the Gaussian and dropout if
/// the form has them; a row that sees nothing is zeros.
/// query [B, n, H·d], key [B, m, H·d], value [B, m, H·d_v] → [B, n, H·d_v]; head h owns the elements h·d … (h+1)·d − 1.
/// parameter: cosine's sharpness [H], additive's vector [H, d]; relative [H, n + m − 1]: added to e_ij at j − i + n − 1; centres
/// [B, H, n, 1]. Each may be undefined. The kernel holds one block of scores at a time, never [B, H, n, m] (nor [n, m, d] for additive),
/// draws dropout's mask again for the gradient, and works in proportion to the window (Vaswani et al. 2017, Bahdanau et al. 2015, Luong et
/// al. 2015; blocks as in Dao et al. 2022).
Tensor fused_attention(AttentionForm const& form, Tensor const& query, Tensor const& key, Tensor const& value, Tensor const& parameter = {},
                       Tensor const& relative = {}, Tensor const& centres = {});
/// The same as a composition of simple operations.
Tensor attention_reference(AttentionForm const& form, Tensor const& query, Tensor const& key, Tensor const& value,
                           Tensor const& parameter = {}, Tensor const& relative = {}, Tensor const& centres = {});
/// Softmax attention over scale · q_i·k_j (Vaswani et al. 2017).
inline Tensor scaled_dot_attention(Tensor const& query, Tensor const& key, Tensor const& value, std::int64_t heads, double scale,
                                   Visibility const& visibility) {
  return fused_attention({.heads = heads, .visibility = visibility, .scale = scale}, query, key, value);
}
/// Bahdanau's scores vᵀ tanh(q_i + k_j): query [B, H, n, d], key [B, H, m, d], vector [H, d] → [B, H, n, m]. Holds [B, H, n, m, d].
Tensor additive_scores(Tensor const& query, Tensor const& key, Tensor const& vector);
/// β q_i·k_j / (‖q_i‖ ‖k_j‖ + 1e-8), β = sharpness [H]; the gradient of a zero vector's length is 0.
Tensor cosine_scores(Tensor const& query, Tensor const& key, Tensor const& sharpness);
}  // namespace heed
