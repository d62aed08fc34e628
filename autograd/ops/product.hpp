#pragma once

#include "autograd/tensor.hpp"

/// Products and triangular systems (matmul.cpp, head_product.cpp, convolve.cpp). Rules of all: autograd/ops/operations.hpp.
namespace heed {

/// a [..., n, k] · b [..., k, m] with broadcast batch axes; a vector is a row on the left and a column on the right (NumPy's matmul).
/// transpose_a / transpose_b: the last two axes are swapped first, without a copy.
Tensor matmul(Tensor const& a, Tensor const& b, bool transpose_a = false, bool transpose_b = false);
/// x [..., in] · weightᵀ + bias + residual: weight [out, in], bias [out] or undefined, residual [..., out] or undefined. A single row in
/// bfloat16 uses weights that a decoder has already rounded (autograd/ops/rounded_weights.hpp).
Tensor linear(Tensor const& x, Tensor const& weight, Tensor const& bias, Tensor const& residual = {});
/// Per head h of x [B, T, H·d]: x_h W_h, weight [H, d, e] or, shared by all heads, [1, d, e] → [B, T, H·e].
Tensor head_product(Tensor const& x, Tensor const& weight, Index heads);
/// Per head v_h·tanh(x_h W_h), vector [H, e] → [B, H, T]; holds nothing of size [B, T, H·e].
Tensor head_readout(Tensor const& x, Tensor const& weight, Tensor const& vector, Index heads);
/// x [B, C, H, W], weight [O, C, h, w], bias [O] or undefined → [B, O, (H + 2p − h)/stride + 1, …]: cross-correlation.
Tensor conv2d(Tensor const& x, Tensor const& weight, Tensor const& bias, Index stride = 1, Index padding = 0);
/// x [B, T, C], weight [C, w] → [B, T, C]: y_t = Σ_i weight[:, i] x_{t − w + 1 + i}, x being 0 before the start.
Tensor convolve_causal(Tensor const& x, Tensor const& weight);

/// (I + A)⁻¹ R, or (I + A)⁻ᵀ R: of A [..., n, n] only what is below the diagonal is read; R [..., n, m] with the same batch axes.
Tensor solve_unit_lower(Tensor const& a, Tensor const& right, bool transposed = false);

}  // namespace heed
