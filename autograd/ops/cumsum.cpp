// Running sums.

#include <algorithm>

#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/pairwise.hpp"
#include "autograd/ops/formula.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/parallel.hpp"
#include "autograd/shape.hpp"

namespace heed {

namespace {

using kernels::Columns, kernels::columns_at_once;

/// Running sums of `count` columns. Every sum is that of at most `rows_of_partial_sum` numbers and of few sums of blocks before them, which
/// are added in pairs: rows are cut in halves until they are short.
template <class T>
struct RunningSums {
  T const* from;
  T* out;
  Index step;  ///< from a row to the next, negative from the last one on
  Index count;

  /// out = before + running sums of rows [first, first + rows); total = their sum.
  void over(Index first, Index rows, Columns<T> const& before, Columns<T>& total) const {
    if (rows <= kernels::rows_of_partial_sum) return over_few(first, rows, before, total);
    Index const half = (rows / 2 + kernels::rows_of_partial_sum - 1) / kernels::rows_of_partial_sum * kernels::rows_of_partial_sum;
    over(first, half, before, total);
    Columns<T> between = before, second;
    between += total;
    over(first + half, rows - half, between, second);
    total += second;
  }

 private:
  void over_few(Index first, Index rows, Columns<T> const& before, Columns<T>& total) const {
    Columns<T> sums{};
    for (Index r = first; r < first + rows; ++r) {
      for (Index c = 0; c < count; ++c) {
        sums.values[c] += from[r * step + c];
        out[r * step + c] = before.values[c] + sums.values[c];
      }
    }
    total = sums;
  }
};

}  // namespace

Tensor cumsum(Tensor const& x, Index axis, bool reverse) {
  require_real("cumsum", x);
  axis = axis_of("cumsum", x.shape(), axis);
  AxisSplit const p(x.shape(), axis);
  Tensor y(x.shape(), x.dtype());
  kernels::with_real(y.dtype(), [&](auto type) {
    using T = decltype(type);
    T const* const from = x.data<T>().data();
    T* const out = y.mutable_data<T>().data();
    Index const blocks = (p.inner + columns_at_once - 1) / columns_at_once;
    double const cost = arithmetic_cost * static_cast<double>(p.extent * std::min(p.inner, columns_at_once));
    parallel_for(p.outer * blocks, cost, [&](Index begin, Index end) {
      for (Index b = begin; b < end; ++b) {
        Index const first = b % blocks * columns_at_once;
        Index const at = (b / blocks * p.extent + (reverse ? p.extent - 1 : 0)) * p.inner + first;
        Columns<T> total{};
        RunningSums<T>{from + at, out + at, reverse ? -p.inner : p.inner, std::min(columns_at_once, p.inner - first)}.over(
            0, p.extent, Columns<T>{}, total);
      }
    });
  });
  return record("cumsum", {x}, std::move(y), keep_nothing,
                [axis, reverse](BackwardContext const& s) { return std::vector{cumsum(s.dy, axis, !reverse)}; });
}

}  // namespace heed
