#pragma once

#include <span>

#include "autograd/tensor.hpp"

/// Operations with int64 indices (index.cpp). Rules common to all operations: autograd/ops/operations.hpp.
namespace heed {

/// y[… i …] = x[… index[… i …] …] along an axis; index has x's shape but for that axis (torch.gather).
Tensor gather(Tensor const& x, Index axis, Tensor const& index);
/// Zeros of `shape`, plus source[… i …] added at index[… i …] along an axis: the transpose of gather.
Tensor scatter_add(Shape const& shape, Index axis, Tensor const& index, Tensor const& source);
/// Rows of weight [V, d] by tokens [...]: [..., d]. Throws Error naming the first token outside [0, V).
Tensor embedding(Tensor const& weight, Tensor const& tokens);
/// Zeros [rows, d], with row i of source [..., d] added to row tokens[i]: the transpose of embedding.
Tensor embedding_transposed(Tensor const& source, Tensor const& tokens, Index rows);
/// The rows x[i, …] of these indices, in this order; indices may repeat. Throws Error naming the first index outside.
Tensor take(Tensor const& x, std::span<Index const> rows);
/// [..., classes], 1 at the index.
Tensor one_hot(Tensor const& index, Index classes, DType dtype);

}  // namespace heed
