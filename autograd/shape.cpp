#include "autograd/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"

namespace heed {

Shape::Shape(std::span<Index const> extents) {
  for (Index const extent : extents) append(extent);
}

Index Shape::elements() const {
  constexpr Index max_elements = Index{1} << 60;  // its bytes can still be counted
  Index product = 1;
  for (Index const extent : *this) {
    if (__builtin_mul_overflow(product, extent, &product) || product > max_elements)
      throw Error(fmt::format("the shape {} has too many elements to count", to_string(*this)));
  }
  return product;
}

std::size_t Shape::position(Index axis) const {
  auto const rank = static_cast<Index>(rank_);
  if (axis < -rank || axis >= rank) throw Error(fmt::format("axis {} is out of range for the shape {}", axis, to_string(*this)));
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

void Shape::append(Index extent) {
  if (rank_ == max_rank) throw Error(fmt::format("a shape has at most {} axes; {} and another are too many", max_rank, to_string(*this)));
  if (extent < 0) throw Error(fmt::format("a shape cannot have the extent {}", extent));
  extents_[rank_++] = extent;
}

std::string to_string(Shape const& shape) { return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", ")); }

Shape broadcast(Shape const& a, Shape const& b, char const* operation) {
  if (a == b) return a;
  Shape result = a.rank() >= b.rank() ? a : b;
  Shape const& shorter = a.rank() >= b.rank() ? b : a;
  for (Index axis = 1; axis <= static_cast<Index>(shorter.rank()); ++axis) {
    Index const wide = result[-axis];
    Index const narrow = shorter[-axis];
    if (wide != narrow && wide != 1 && narrow != 1)
      throw Error(fmt::format("{}: shapes do not broadcast: {} and {}", operation, to_string(a), to_string(b)));
    if (wide == 1) result.set(-axis, narrow);
  }
  return result;
}

Index axis_of(char const* operation, Shape const& shape, Index axis) {
  auto const rank = static_cast<Index>(shape.rank());
  if (axis < -rank || axis >= rank)
    throw Error(fmt::format("{}: axis {} is out of range for the shape {}", operation, axis, to_string(shape)));
  return axis < 0 ? axis + rank : axis;
}

AxisSplit::AxisSplit(Shape const& shape, Index axis) : extent(shape[axis]) {
  for (Index i = 0; i < axis; ++i) outer *= shape[i];
  for (Index i = axis + 1; i < static_cast<Index>(shape.rank()); ++i) inner *= shape[i];
}

}  // namespace heed
