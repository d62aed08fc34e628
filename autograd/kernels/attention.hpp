#pragma once

#include <cstdint>

#include "autograd/attention.hpp"
#include "autograd/kernels/key_range.hpp"

namespace heed::kernels {

/// The visible keys (the first `visible`) with |j − centre| ≤ reach; if there is none, the visible key nearest to the centre (the lower of
/// two). Empty only where nothing is visible.
KeyRange window_around(double centre, double reach, std::int64_t visible);

/// One call of fused attention.
struct AttentionCall {
  AttentionForm form;
  AttentionInputs in;
  std::int64_t batch, queries, keys, width, value_width;
};

/// Numbers of every row that the forward pass keeps for the derivative: a softmax's largest score m and 1/Σ_j e^{e_ij − m},
/// or what an align keeps.
inline constexpr std::int64_t kept_numbers = 2;

/// context [B, n, H·d_v], kept [B, H, n, kept_numbers] and, unless null, rows [B, H, n, row_statistics].
template <class T>
void attention_forward(AttentionCall const& call, Tensor& context, Tensor& kept, Tensor* rows);

/// Gradients of the inputs from that of the context; those whose input is undefined stay so.
template <class T>
AttentionInputs attention_backward(AttentionCall const& call, Tensor const& kept, Tensor const& dcontext);

}  // namespace heed::kernels
