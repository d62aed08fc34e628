#pragma once

#include "autograd/tensor.hpp"

/// Softmax and norms (softmax.cpp, normalise.cpp). Rules common to all operations: autograd/ops/operations.hpp.
namespace heed {

Tensor softmax(Tensor const& x, Index axis = -1);
Tensor log_softmax(Tensor const& x, Index axis = -1);
/// Softmax along the last axis where `visible` (broadcast to x) is not 0; a row with nothing visible is zeros, with zero gradient.
Tensor masked_softmax(Tensor const& x, Tensor const& visible);
/// e^{x_j}/(e^{s_h} + Σ_j e^{x_j}) over the visible positions of x [B, H, n, m], s = sinks [H]: a softmax with one extra position, which
/// is dropped. `visible` as in masked_softmax; a row without visible positions is zeros.
Tensor softmax_with_sink(Tensor const& x, Tensor const& visible, Tensor const& sinks);
/// The Euclidean projection of each row's visible part onto the simplex (Martins & Astudillo 2016), and 1.5-entmax, the argmax of p·x + H
/// with Tsallis' entropy H, α = 1.5 (Peters et al. 2019): rows sum to one and can hold exact zeros. `visible` as in masked_softmax.
Tensor sparsemax(Tensor const& x, Tensor const& visible);
Tensor entmax15(Tensor const& x, Tensor const& visible);
/// (x − mean)/√(variance + eps) · weight + bias over the last axis (Ba et al. 2016); weight: [last extent], bias: the same or undefined.
Tensor layer_norm(Tensor const& x, Tensor const& weight, Tensor const& bias, double eps = 1e-5);
/// x/√(mean x² + eps) · weight over the last axis (Zhang & Sennrich 2019).
Tensor rms_norm(Tensor const& x, Tensor const& weight, double eps = 1e-5);

}  // namespace heed
