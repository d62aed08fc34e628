#include "autograd/shape.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"

namespace heed {

Shape::Shape(std::span<std::int64_t const> extents) {
  for (std::int64_t const extent : extents) append(extent);
}

std::int64_t Shape::elements() const {
  constexpr std::int64_t most = std::int64_t{1} << 60;  // its bytes can still be counted
  std::int64_t product = 1;
  for (std::int64_t const extent : *this) {
    if (__builtin_mul_overflow(product, extent, &product) || product > most)
      throw Error(fmt::format("the shape {} has too many elements to count", to_string(*this)));
  }
  return product;
}

std::size_t Shape::position(std::int64_t axis) const {
  auto const rank = static_cast<std::int64_t>(rank_);
  if (axis < -rank || axis >= rank) throw Error(fmt::format("axis {} is out of range for the shape {}", axis, to_string(*this)));
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

void Shape::append(std::int64_t extent) {
  if (rank_ == max_rank) throw Error(fmt::format("a shape has at most {} axes; {} and another are too many", max_rank, to_string(*this)));
  if (extent < 0) throw Error(fmt::format("a shape cannot have the extent {}", extent));
  extents_[rank_++] = extent;
}

bool operator==(Shape const& a, Shape const& b) { return std::ranges::equal(a, b); }

std::string to_string(Shape const& shape) { return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", ")); }

Shape broadcast(Shape const& a, Shape const& b, char const* operation) {
  if (a == b) return a;
  Shape result = a.rank() >= b.rank() ? a : b;
  Shape const& shorter = a.rank() >= b.rank() ? b : a;
  for (std::int64_t axis = 1; axis <= static_cast<std::int64_t>(shorter.rank()); ++axis) {
    std::int64_t const wide = result[-axis];
    std::int64_t const narrow = shorter[-axis];
    if (wide != narrow && wide != 1 && narrow != 1) {
      throw Error(fmt::format("{}: shapes do not broadcast: {} and {}", operation, to_string(a), to_string(b)));
    }
    if (wide == 1) result.set(-axis, narrow);
  }
  return result;
}

std::int64_t axis_of(char const* operation, Shape const& shape, std::int64_t axis) {
  auto const rank = static_cast<std::int64_t>(shape.rank());
  if (axis < -rank || axis >= rank)
    throw Error(fmt::format("{}: axis {} is out of range for the shape {}", operation, axis, to_string(shape)));
  return axis < 0 ? axis + rank : axis;
}

AxisSplit::AxisSplit(Shape const& shape, std::int64_t axis) : extent(shape[axis]) {
  for (std::int64_t i = 0; i < axis; ++i) outer *= shape[i];
  for (std::int64_t i = axis + 1; i < static_cast<std::int64_t>(shape.rank()); ++i) inner *= shape[i];
}

}  // namespace heed
