#pragma once

#include <vector>

#include "autograd/tensor.hpp"

/// Shapes (shape.cpp, slice.cpp). Rules common to all operations: autograd/ops/operations.hpp.
namespace heed {

/// The same elements in another shape; one extent may be −1. Shares the array.
Tensor reshape(Tensor const& x, std::vector<Index> const& extents);
Tensor permute(Tensor const& x, std::vector<Index> const& axes);
Tensor transpose(Tensor const& x, Index axis1 = -2, Index axis2 = -1);
/// Repeats extents of 1, and adds axes in front, up to `shape`.
Tensor expand(Tensor const& x, Shape const& shape);
Tensor squeeze(Tensor const& x, Index axis);
Tensor unsqueeze(Tensor const& x, Index axis);  ///< a new axis of extent 1 at this position of the result
/// Elements start, start + step, … before `stop` along an axis; negative positions count from the end; step ≠ 0 may be negative.
Tensor slice(Tensor const& x, Index axis, Index start, Index stop, Index step = 1);
Tensor concatenate(std::vector<Tensor> const& parts, Index axis);
Tensor stack(std::vector<Tensor> const& parts, Index axis);
/// Consecutive pieces of the given sizes along an axis.
std::vector<Tensor> split(Tensor const& x, std::vector<Index> const& sizes, Index axis);
/// Adds `value` before and after along an axis.
Tensor pad(Tensor const& x, Index axis, Index before, Index after, double value = 0);
/// The last two axes' lower triangle: elements with column ≤ row + diagonal; 0 elsewhere.
Tensor tril(Tensor const& x, Index diagonal = 0);

}  // namespace heed
