// Reshaping, moving axes, repeating, of any dtype. What keeps the elements' order shares the array; the rest is one strided copy.

#include "autograd/ops/shape.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/graph_memory.hpp"
#include "autograd/kernels/strided.hpp"
#include "autograd/node.hpp"
#include "autograd/shape.hpp"

namespace heed {

namespace {

using Extents = std::vector<Index>;

std::string to_text(Extents const& numbers) { return fmt::format("[{}]", fmt::join(numbers, ", ")); }

/// The same elements under another shape; a constant of as many elements is all the rule needs.
Tensor reshaped(char const* operation, Tensor const& x, Shape const& shape) {
  if (shape == x.shape()) return x;
  bool const again = x.node() && x.node()->recompute;  // then so is this: its array is the same
  Tensor y = record(operation, {x}, x.viewed(shape), again ? keep_inputs : keep_nothing,
                    [operation](BackwardContext const& s) { return std::vector{reshaped(operation, s.dy, s.x().shape())}; });
  return again ? recomputable(std::move(y), [shape](std::vector<Tensor> const& in) { return in[0].viewed(shape); }) : y;
}

}  // namespace

Tensor reshape(Tensor const& x, Extents const& extents) {
  Extents resolved = extents;
  auto const open = std::ranges::find(resolved, -1);
  if (open != resolved.end()) {
    Index const others = std::accumulate(resolved.begin(), resolved.end(), Index{-1}, std::multiplies<>());
    *open = others > 0 ? x.elements() / others : -1;
  }
  bool const valid = std::ranges::all_of(resolved, [](Index extent) { return extent >= 0; });
  Index const elements = valid ? std::accumulate(resolved.begin(), resolved.end(), Index{1}, std::multiplies<>()) : -1;
  if (elements != x.elements()) throw Error(fmt::format("reshape: {} does not become {}", to_string(x.shape()), to_text(extents)));
  return reshaped("reshape", x, Shape(resolved));
}

Tensor squeeze(Tensor const& x, Index axis) {
  Index const gone = axis_of("squeeze", x.shape(), axis);
  if (x.size(gone) != 1) throw Error(fmt::format("squeeze: axis {} of {} is not 1", axis, to_string(x.shape())));
  Extents extents(x.shape().begin(), x.shape().end());
  extents.erase(extents.begin() + gone);
  return reshaped("squeeze", x, Shape(extents));
}

Tensor unsqueeze(Tensor const& x, Index axis) {
  auto const rank = static_cast<Index>(x.rank());
  if (axis < -rank - 1 || axis > rank) throw Error(fmt::format("unsqueeze: no place for an axis {} in {}", axis, to_string(x.shape())));
  Extents extents(x.shape().begin(), x.shape().end());
  extents.insert(extents.begin() + (axis < 0 ? axis + rank + 1 : axis), 1);
  return reshaped("unsqueeze", x, Shape(extents));
}

Tensor permute(Tensor const& x, Extents const& axes) {
  Extents order;
  for (Index const axis : axes) order.push_back(axis_of("permute", x.shape(), axis));
  Extents inverse(x.rank(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) at(inverse, order[i]) = static_cast<Index>(i);
  if (order.size() != x.rank() || std::ranges::count(inverse, -1) > 0)
    throw Error(fmt::format("permute: {} does not name every axis of {} once", to_text(axes), to_string(x.shape())));
  kernels::Layout const from = kernels::row_major(x.shape());
  kernels::Layout moved;
  Shape shape;
  Index last = -1;
  bool in_order = true;  // but for axes of 1, which may stand anywhere
  for (std::size_t i = 0; i < order.size(); ++i) {
    moved.strides[i] = at(from.strides, order[i]);
    shape.append(x.size(order[i]));
    if (x.size(order[i]) == 1) continue;
    in_order = in_order && order[i] > last;
    last = order[i];
  }
  Tensor y = in_order ? x.viewed(shape) : Tensor(shape, x.dtype());
  if (!in_order) kernels::copy_strided(shape, x, moved, y, kernels::row_major(shape));
  return record("permute", {x}, std::move(y), keep_nothing,
                [inverse](BackwardContext const& s) { return std::vector{permute(s.dy, inverse)}; });
}

Tensor transpose(Tensor const& x, Index axis1, Index axis2) {
  Extents axes(x.rank());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(at(axes, axis_of("transpose", x.shape(), axis1)), at(axes, axis_of("transpose", x.shape(), axis2)));
  return permute(x, axes);
}

Tensor expand(Tensor const& x, Shape const& shape) {
  if (shape == x.shape()) return x;
  bool fits = shape.rank() >= x.rank();
  for (Index axis = 1; fits && axis <= static_cast<Index>(x.rank()); ++axis) fits = x.size(-axis) == 1 || x.size(-axis) == shape[-axis];
  if (!fits) throw Error(fmt::format("expand: {} does not expand to {}", to_string(x.shape()), to_string(shape)));
  Tensor y(shape, x.dtype());
  kernels::copy_strided(shape, x, kernels::broadcast_layout(x.shape(), shape), y, kernels::row_major(shape));
  return record("expand", {x}, std::move(y), keep_nothing,
                [](BackwardContext const& s) { return std::vector{s.dy}; });  // the engine sums what was repeated
}

}  // namespace heed
