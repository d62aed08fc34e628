#pragma once

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/shape.hpp"

namespace heed {

/// An axis of a shape counted from the front. Throws Error naming the operation: "slice: axis 3 is out of range for the shape [2, 4]".
inline std::int64_t axis_of(char const* operation, Shape const& shape, std::int64_t axis) {
  auto const rank = static_cast<std::int64_t>(shape.rank());
  if (axis < -rank || axis >= rank)
    throw Error(fmt::format("{}: axis {} is out of range for the shape {}", operation, axis, to_string(shape)));
  return axis < 0 ? axis + rank : axis;
}

/// A shape seen around one of its axes: [outer, extent, inner].
struct Around {
  std::int64_t outer = 1, extent = 1, inner = 1;

  Around(Shape const& shape, std::int64_t axis) : extent(shape[axis]) {
    for (std::int64_t i = 0; i < axis; ++i) outer *= shape[i];
    for (std::int64_t i = axis + 1; i < static_cast<std::int64_t>(shape.rank()); ++i) inner *= shape[i];
  }
};

}  // namespace heed
