// Slicing, joining and padding along an axis, of any dtype. The transpose of a slice is an operation of its own: each is the other's rule.

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/graph.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/strided.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/parallel.hpp"
#include "autograd/shape.hpp"

namespace heed {

namespace {

/// Elements start, start + step, … of an axis, `count` of them.
struct AxisSlice {
  Index axis, start, count, step;
};

Tensor sliced(Tensor const& x, AxisSlice const& range);

/// Where the elements of a range are in an array of `shape`.
kernels::Layout layout_of(Shape const& shape, AxisSlice const& range) {
  kernels::Layout layout = kernels::row_major(shape);
  auto& stride = at(layout.strides, range.axis);
  layout.offset = range.start * stride;
  stride *= range.step;
  return layout;
}

/// Adds a slice's gradient in place: for an array that is read in pieces, as by a recurrent network, the cost is proportional to the piece.
Tensor added(Tensor const& piece, AxisSlice const& range, Tensor& into) {
  Tensor const sum = sliced(into, range) + piece;
  kernels::copy_strided(sum.shape(), sum, kernels::row_major(sum.shape()), into, layout_of(into.shape(), range));
  return into;
}

/// Zeros of `shape` with `piece` in `range`: the transpose of a slice.
Tensor unslice(Tensor const& piece, Shape const& shape, AxisSlice const& range) {
  Tensor y = Tensor::zeros(shape, piece.dtype());
  kernels::copy_strided(piece.shape(), piece, kernels::row_major(piece.shape()), y, layout_of(shape, range));
  return record("unslice", {piece}, std::move(y), keep_nothing,
                [range](BackwardContext const& s) { return std::vector{sliced(s.dy, range)}; });
}

/// x's elements in `range`, which is within x.
Tensor sliced(Tensor const& x, AxisSlice const& range) {
  auto const [axis, start, count, step] = range;
  if (start == 0 && count == x.size(axis) && step == 1) return x;
  Shape shape = x.shape();
  shape.set(axis, count);
  AxisSplit const split(x.shape(), axis);
  Tensor y;
  if (split.outer == 1 && step == 1) {
    y = x.viewed({split.extent, split.inner}).rows(start, count).viewed(shape);
  } else {
    y = Tensor(shape, x.dtype());
    kernels::copy_strided(shape, x, layout_of(x.shape(), range), y, kernels::row_major(shape));
  }
  return record("slice", {x}, std::move(y), Keep{.sum = true}, [range](BackwardContext const& s) {
    return std::vector{s.into != nullptr ? added(s.dy, range, *s.into) : unslice(s.dy, s.x().shape(), range)};
  });
}

}  // namespace

Tensor slice(Tensor const& x, Index axis, Index start, Index stop, Index step) {
  Index const position = axis_of("slice", x.shape(), axis);
  if (step == 0) throw Error(fmt::format("slice: a step of 0 along axis {} of {}", axis, to_string(x.shape())));
  // Positions beyond either end are cut to it, as in Python.
  Index const extent = x.size(position);
  Index const lowest = step > 0 ? 0 : -1;
  auto const within = [&](Index i) { return std::clamp(i < 0 ? i + extent : i, lowest, extent + lowest); };
  Index const first = within(start);
  Index const distance = step > 0 ? within(stop) - first : first - within(stop);
  Index const stride = std::abs(step);
  Index const count = distance > 0 ? (distance - 1) / stride + 1 : 0;
  return sliced(x, {position, count > 0 ? first : 0, count, step});
}

std::vector<Tensor> split(Tensor const& x, std::vector<Index> const& sizes, Index axis) {
  Index const position = axis_of("split", x.shape(), axis);
  bool const negative = std::ranges::any_of(sizes, [](Index size) { return size < 0; });
  if (negative || std::accumulate(sizes.begin(), sizes.end(), Index{0}) != x.size(position))
    throw Error(fmt::format("split: the sizes [{}] do not make up axis {} of {}", fmt::join(sizes, ", "), axis, to_string(x.shape())));
  std::vector<Tensor> pieces;
  Index start = 0;
  for (Index const size : sizes) {
    pieces.push_back(sliced(x, {position, start, size, 1}));
    start += size;
  }
  return pieces;
}

Tensor concatenate(std::vector<Tensor> const& parts, Index axis) {
  if (parts.empty()) throw Error("concatenate: no tensors");
  Tensor const& first = parts.front();
  Index const position = axis_of("concatenate", first.shape(), axis);
  Shape shape = first.shape();
  shape.set(position, 0);
  for (Tensor const& part : parts) {
    if (part.dtype() != first.dtype())
      throw Error(fmt::format("concatenate: dtypes differ: {} and {}", to_string(first.dtype()), to_string(part.dtype())));
    Shape rest = part.shape();
    if (rest.rank() == shape.rank()) rest.set(position, shape[position]);
    if (rest != shape)
      throw Error(
          fmt::format("concatenate: shapes differ beside axis {}: {} and {}", axis, to_string(first.shape()), to_string(part.shape())));
    shape.set(position, shape[position] + part.size(position));
  }
  Tensor y(shape, first.dtype());
  kernels::Layout layout = kernels::row_major(shape);
  for (Tensor const& part : parts) {
    kernels::copy_strided(part.shape(), part, kernels::row_major(part.shape()), y, layout);
    layout.offset += part.size(position) * at(layout.strides, position);
  }
  return record("concatenate", parts, std::move(y), keep_nothing, [position](BackwardContext const& s) {
    std::vector<Tensor> gradients;
    Index start = 0;
    for (std::size_t i = 0; i < s.inputs.size(); ++i) {
      Index const size = s.x(i).size(position);
      gradients.push_back(s.wants(i) ? sliced(s.dy, {position, start, size, 1}) : Tensor());
      start += size;
    }
    return gradients;
  });
}

Tensor stack(std::vector<Tensor> const& parts, Index axis) {
  if (parts.empty()) throw Error("stack: no tensors");
  std::vector<Tensor> layers;
  for (Tensor const& part : parts) {
    if (part.shape() != parts.front().shape())
      throw Error(fmt::format("stack: shapes differ: {} and {}", to_string(parts.front().shape()), to_string(part.shape())));
    layers.push_back(unsqueeze(part, axis));
  }
  return concatenate(layers, axis);
}

Tensor pad(Tensor const& x, Index axis, Index before, Index after, double value) {
  Index const position = axis_of("pad", x.shape(), axis);
  if (before < 0 || after < 0)
    throw Error(
        fmt::format("pad: {} before and {} after axis {} of {}: neither can be negative", before, after, axis, to_string(x.shape())));
  Shape shape = x.shape();
  shape.set(position, before + x.size(position) + after);
  Tensor y = Tensor::full(shape, value, x.dtype());
  AxisSlice const inside{position, before, x.size(position), 1};
  kernels::copy_strided(x.shape(), x, kernels::row_major(x.shape()), y, layout_of(shape, inside));
  return record("pad", {x}, std::move(y), keep_nothing, [inside](BackwardContext const& s) { return std::vector{sliced(s.dy, inside)}; });
}

Tensor tril(Tensor const& x, Index diagonal) {
  if (x.rank() < 2) throw Error(fmt::format("tril: wants a matrix, not {}", to_string(x.shape())));
  Tensor y = Tensor::zeros(x.shape(), x.dtype());
  Index const rows = x.size(-2);
  Index const columns = x.size(-1);
  kernels::with_any(x.dtype(), [&](auto type) {
    auto const* const from = x.data<decltype(type)>().data();
    auto* const to = y.mutable_data<decltype(type)>().data();
    Index const all = columns == 0 ? 0 : x.elements() / columns;
    auto const copy_row = [&](Index row) {
      std::copy_n(from + row * columns, std::clamp<Index>(row % rows + diagonal + 1, 0, columns), to + row * columns);
    };
    parallel_each(all, 0.1 * static_cast<double>(columns), copy_row, Cut::whole);
  });
  return record("tril", {x}, std::move(y), keep_nothing,
                [diagonal](BackwardContext const& s) { return std::vector{tril(s.dy, diagonal)}; });
}

}  // namespace heed
