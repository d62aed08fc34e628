#pragma once

#include <array>

#include "autograd/shape.hpp"
#include "autograd/tensor.hpp"

namespace heed::kernels {

/// Positions of an array's elements in memory: (i, j, …) at offset + i·strides[0] + j·strides[1] + …, counted in elements.
struct Layout {
  Index offset = 0;
  std::array<Index, Shape::max_rank> strides{};
};

/// The layout of a contiguous array.
Layout row_major(Shape const& shape);
/// The layout of a contiguous array that is broadcast to a shape: stride 0 where it is repeated.
Layout broadcast_layout(Shape const& from, Shape const& to);

/// to[target(i…)] = from[source(i…)] for every index i… below `extents`; both of one dtype, any of the three. Runs that are contiguous on
/// both sides are copied whole, transpositions in blocks: both are limited by memory bandwidth.
void copy_strided(Shape const& extents, Tensor const& from, Layout const& source, Tensor& to, Layout const& target);

}  // namespace heed::kernels
