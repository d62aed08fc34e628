#pragma once

#include <cstdint>

#include "autograd/tensor.hpp"

/// By indices, which are int64 (index.cpp). What all operations have in common: autograd/operations.hpp.
namespace heed {

/// y[… i …] = x[… index[… i …] …] along an axis; index has x's shape but for that axis (torch.gather).
Tensor gather(Tensor const& x, std::int64_t axis, Tensor const& index);
/// Zeros of `shape`, to which source[… i …] is added at index[… i …] along an axis: the transpose of gather.
Tensor scatter_add(Shape const& shape, std::int64_t axis, Tensor const& index, Tensor const& source);
/// Rows of weight [V, d] by tokens [...]: [..., d]. Throws Error naming the first token outside [0, V).
Tensor embedding(Tensor const& weight, Tensor const& tokens);
/// Zeros [rows, d], to whose row tokens[i] the row i of source [..., d] is added: the transpose of embedding.
Tensor embedding_transposed(Tensor const& source, Tensor const& tokens, std::int64_t rows);
/// [..., classes], 1 at the index.
Tensor one_hot(Tensor const& index, std::int64_t classes, DType dtype);

}  // namespace heed
