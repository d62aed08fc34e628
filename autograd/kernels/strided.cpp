#include "autograd/kernels/strided.hpp"

#include <algorithm>
#include <cstring>

#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/simd.hpp"
#include "autograd/parallel.hpp"

namespace heed::kernels {

namespace {

/// A loop of the nest: its number of steps, and the stride of source and target per step.
struct Loop {
  Index count, from, to;
};

/// The loops of a copy, outermost first. At least two; loops of one step are left out, and loops that can be one are merged.
struct LoopNest {
  std::array<Loop, Shape::max_rank + 1> loops{{{1, 0, 0}}};
  std::size_t depth = 1;

  void add(Loop const& loop) {
    if (loop.count == 1) return;
    Loop& last = loops[depth - 1];
    if (last.from == loop.from * loop.count && last.to == loop.to * loop.count) {
      last = {last.count * loop.count, loop.from, loop.to};
    } else {
      loops[depth++] = loop;
    }
  }
};

LoopNest loop_nest(Shape const& extents, Layout const& source, Layout const& target) {
  LoopNest nest;
  for (std::size_t axis = 0; axis < extents.rank(); ++axis)
    nest.add({extents[static_cast<Index>(axis)], source.strides[axis], target.strides[axis]});
  if (nest.depth == 1) nest.loops[nest.depth++] = {1, 1, 1};
  // A transposition: the loop along which the source is contiguous comes next to the innermost, and the two go in blocks.
  auto const end = nest.loops.begin() + static_cast<std::ptrdiff_t>(nest.depth) - 1;
  if (end->from != 1) {
    auto const contiguous = std::find_if(nest.loops.begin(), end, [](Loop const& loop) { return loop.from == 1; });
    if (contiguous != end) std::rotate(contiguous, contiguous + 1, end);
  }
  return nest;
}

/// The two innermost loops, over `rows` × column.count elements.
template <class T>
void copy_tile(T const* from, T* to, Index rows, Loop const& row, Loop const& column) {
  if (column.to == 1 && column.from <= 1 && column.from >= 0) {
    for (Index r = 0; r < rows; ++r) {
      T const* const source = from + r * row.from;
      T* const target = to + r * row.to;
      if (column.from == 0) {
        std::fill_n(target, column.count, *source);
      } else {
        std::memcpy(target, source, static_cast<std::size_t>(column.count) * sizeof(T));
      }
    }
    return;
  }
  constexpr Index block = 16;
  for (Index r = 0; r < rows; r += block) {
    Index const r_count = std::min(block, rows - r);
    for (Index c = 0; c < column.count; c += block) {
      Index const c_count = std::min(block, column.count - c);
      T const* const source = from + r * row.from + c * column.from;
      T* const target = to + r * row.to + c * column.to;
      if (row.from == 1 && column.to == 1 && r_count == block && c_count == block) {
        portable::transpose_square<block>(source, column.from, target, row.to);
        continue;
      }
      for (Index i = 0; i < r_count; ++i) {
        for (Index j = 0; j < c_count; ++j) target[i * row.to + j * column.to] = source[i * row.from + j * column.from];
      }
    }
  }
}

template <class T>
void copy_nest(LoopNest const& nest, T const* from, T* to) {
  Loop const& row = nest.loops[nest.depth - 2];
  Loop const& column = nest.loops[nest.depth - 1];
  double const cost = column.from == 1 && column.to == 1 ? 0.02 * sizeof(T) : 0.1 * sizeof(T);
  Index rows = 1;
  for (std::size_t i = 0; i + 1 < nest.depth; ++i) rows *= nest.loops[i].count;
  if (rows == 1) {
    parallel_for(
        column.count, cost,
        [&](Index begin, Index end) {
          copy_tile(from + begin * column.from, to + begin * column.to, 1, row, {end - begin, column.from, column.to});
        },
        64);
    return;
  }
  parallel_for(rows, cost * static_cast<double>(column.count), [&](Index begin, Index end) {
    while (begin < end) {
      // Row number `begin` of all the loops but the innermost, as an index of each.
      Index const first = begin % row.count;
      Index const count = std::min(row.count - first, end - begin);
      Index source = first * row.from;
      Index target = first * row.to;
      Index rest = begin / row.count;
      for (std::size_t i = nest.depth - 2; i-- > 0;) {
        source += rest % nest.loops[i].count * nest.loops[i].from;
        target += rest % nest.loops[i].count * nest.loops[i].to;
        rest /= nest.loops[i].count;
      }
      copy_tile(from + source, to + target, count, row, column);
      begin += count;
    }
  });
}

}  // namespace

Layout row_major(Shape const& shape) {
  Layout layout;
  Index stride = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    layout.strides[axis] = stride;
    stride *= shape[static_cast<Index>(axis)];
  }
  return layout;
}

Layout broadcast_layout(Shape const& from, Shape const& to) {
  Layout const own = row_major(from);
  Layout layout;
  for (std::size_t axis = 0; axis < from.rank(); ++axis)
    if (from[static_cast<Index>(axis)] != 1) layout.strides[to.rank() - from.rank() + axis] = own.strides[axis];
  return layout;
}

void copy_strided(Shape const& extents, Tensor const& from, Layout const& source, Tensor& to, Layout const& target) {
  if (extents.elements() == 0) return;
  LoopNest const nest = loop_nest(extents, source, target);
  with_any(from.dtype(),
           [&]<class T>(T) { copy_nest(nest, from.data<T>().data() + source.offset, to.mutable_data<T>().data() + target.offset); });
}

}  // namespace heed::kernels
