#pragma once

#include <cstdint>

#include "autograd/attention.hpp"
#include "autograd/kernels/key_range.hpp"

namespace heed::kernels {

inline constexpr double cosine_epsilon = 1e-8;  // as design.md defines the score

/// The visible keys (the first `visible`) with |j − centre| ≤ reach; if there is none, the visible key nearest to the centre (the lower of
/// two). Empty only where nothing is visible.
KeyRange window_around(double centre, double reach, std::int64_t visible);

/// One call of fused attention: shapes, settings, and the arrays (undefined where a part is not used).
struct AttentionCall {
  AttentionForm form;
  std::int64_t batch, queries, keys, width, value_width;
  Tensor query, key, value;  ///< [B, n, H·d], [B, m, H·d], [B, m, H·d_v]
  Tensor parameter;          ///< additive's vector [H, d], cosine's sharpness [H]
  Tensor relative;           ///< [H, n + m − 1]: added to e_ij at j − i + n − 1
  Tensor centres;            ///< local_p's p [B, H, n, 1]
};

/// context [B, n, H·d_v], and what the backward pass needs beside the inputs: the log-sum-exp log Σ_j e^{e_ij} of every row, [B, H, n].
template <class T>
void attention_forward(AttentionCall const& call, Tensor& context, Tensor& log_sum_exp);

/// Gradients of the inputs from that of the context; those whose input is undefined stay so.
struct AttentionGradients {
  Tensor query, key, value, parameter, relative, centres;
};
template <class T>
AttentionGradients attention_backward(AttentionCall const& call, Tensor const& log_sum_exp, Tensor const& dcontext);

}  // namespace heed::kernels
