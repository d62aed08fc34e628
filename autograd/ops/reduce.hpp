#pragma once

#include <vector>

#include "autograd/tensor.hpp"

/// Reductions over `axes` (none: all; one twice throws Error); `keep` leaves extents of 1. Rules of all: autograd/ops/operations.hpp.
namespace heed {

using Axes = std::vector<Index>;

Tensor sum(Tensor const& x, Axes const& axes = {}, bool keep = false);
/// Σ x², without an array of squares.
Tensor sum_of_squares(Tensor const& x, Axes const& axes = {}, bool keep = false);
Tensor mean(Tensor const& x, Axes const& axes = {}, bool keep = false);
/// Σ(x − mean)² / (n − correction).
Tensor variance(Tensor const& x, Axes const& axes = {}, bool keep = false, Index correction = 0);
/// The gradient is shared evenly between ties. Throws Error for an axis of size 0.
Tensor max(Tensor const& x, Axes const& axes = {}, bool keep = false);
Tensor min(Tensor const& x, Axes const& axes = {}, bool keep = false);
/// log Σ eˣ, shifted by the maximum.
Tensor logsumexp(Tensor const& x, Axes const& axes = {}, bool keep = false);
/// Running sums along an axis; `reverse`: from the end.
Tensor cumsum(Tensor const& x, Index axis, bool reverse = false);
/// Sums x to `shape`: the transpose of broadcasting.
Tensor sum_to(Tensor const& x, Shape const& shape);
/// Indices of the largest elements along an axis (the lowest of equals), int64; no derivative.
Tensor argmax(Tensor const& x, Index axis);

}  // namespace heed
