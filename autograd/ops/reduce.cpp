// Reductions over any axes, and running sums.

#include "autograd/ops/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "autograd/elementwise.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/parallel.hpp"
#include "autograd/shape.hpp"

namespace heed {

namespace {

using kernels::Columns, kernels::columns_at_once;

/// A reduction in the form [outer, extent, inner], over the middle axis.
struct Plan {
  Tensor x;
  Index outer = 1, extent = 1, inner = 1;
  Shape kept;    ///< the result's shape with extents of 1
  Shape result;  ///< as asked for
};

/// For each axis of x, whether it is reduced: all if `axes` is empty. Throws Error for integers, an axis out of range, one named twice.
std::vector<bool> reduced_axes(char const* operation, Tensor const& x, Axes const& axes) {
  require_real(operation, x);
  std::vector<bool> reduced(x.rank(), axes.empty());
  for (Index const axis : axes) {
    auto const position = static_cast<std::size_t>(axis_of(operation, x.shape(), axis));
    if (reduced[position]) throw Error(fmt::format("{}: axis {} of {} is named twice", operation, position, to_string(x.shape())));
    reduced[position] = true;
  }
  return reduced;
}

/// Number of elements per result.
Index reduced_elements(char const* operation, Tensor const& x, Axes const& axes) {
  std::vector<bool> const reduced = reduced_axes(operation, x, axes);
  Index count = 1;
  for (std::size_t i = 0; i < reduced.size(); ++i) count *= reduced[i] ? x.size(static_cast<Index>(i)) : 1;
  return count;
}

Plan plan(char const* operation, Tensor const& x, Axes const& axes, bool keep) {
  std::vector<bool> const reduced = reduced_axes(operation, x, axes);
  Plan p;
  std::vector<Index> order;
  std::vector<Index> last;
  int changes = 0;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    auto const axis = static_cast<Index>(i);
    (reduced[i] ? last : order).push_back(axis);
    p.kept.append(reduced[i] ? 1 : x.size(axis));
    if (keep || !reduced[i]) p.result.append(reduced[i] ? 1 : x.size(axis));
    changes += i > 0 && reduced[i] != reduced[i - 1];
    (reduced[i] ? p.extent : last.empty() ? p.outer : p.inner) *= x.size(axis);
  }
  bool const one_block = changes <= 1 || (changes == 2 && !reduced.front());
  if (one_block) {
    p.x = x.detach();
  } else {
    order.insert(order.end(), last.begin(), last.end());
    NoGrad const no_grad;
    p.x = permute(x, order);
    p.outer *= p.inner;
    p.inner = 1;
  }
  return p;
}

/// y[o, i] = the reduction of x[o, :, i]: a contiguous row by `row`, `count` ≤ 64 columns by columns(from, rows, apart, count, total).
template <class Row, class OfColumns>
Tensor reduce(Plan const& p, Row const& row, OfColumns const& columns) {
  Tensor y(p.result, p.x.dtype());
  kernels::with_arrays(p.x, y, [&]<class T>(T const* x, T* out) {
    double const cost = arithmetic_cost * static_cast<double>(p.extent);
    if (p.inner == 1) {
      auto const reduce_row = [&](Index o) { out[o] = row(x + o * p.extent, p.extent); };
      return parallel_each(p.outer, cost, reduce_row, Cut::whole);
    }
    Index const blocks = (p.inner + columns_at_once - 1) / columns_at_once;
    auto const reduce_columns = [&](Index b) {
      Index const first = b % blocks * columns_at_once, count = std::min(columns_at_once, p.inner - first);
      Columns<T> total{};
      columns(x + b / blocks * p.extent * p.inner + first, p.extent, p.inner, count, total);
      std::copy_n(total.values, count, out + b / blocks * p.inner + first);
    };
    parallel_each(p.outer * blocks, cost * columns_at_once, reduce_columns, Cut::whole);
  });
  return y;
}

/// total = each row's numbers combined, one after another, with `start`.
template <class T, class Join>
void join_rows(T const* from, Index rows, Index apart, Index count, T start, Columns<T>& total, Join const& join) {
  Columns<T> sums;  // not `total` itself, whose memory could be `from` for all that the compiler knows
  std::fill_n(sums.values, columns_at_once, start);
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < count; ++c) join(sums.values[c], from[r * apart + c]);
  }
  total = sums;
}

/// Σ f(x): of columns some rows at a time, whose sums are added in pairs.
template <class F>
Tensor summed(Plan const& p, F const& f) {
  return reduce(
      p, [&](auto const* x, Index n) { return kernels::sum_row<std::remove_cvref_t<decltype(*x)>>(n, f, x); },
      [&]<class T>(T const* from, Index rows, Index apart, Index count, Columns<T>& total) {
        auto const add = [&](T& into, T x) { into += f(x); };
        if (rows <= kernels::rows_of_partial_sum) return join_rows(from, rows, apart, count, T(0), total, add);
        kernels::PairwiseSum<Columns<T>> sum;
        for (Index r = 0; r < rows; r += kernels::rows_of_partial_sum) {
          Index const some = std::min(kernels::rows_of_partial_sum, rows - r);
          sum.add_made(static_cast<std::uint64_t>(r / kernels::rows_of_partial_sum),
                       [&](Columns<T>& partial) { join_rows(from + r * apart, some, apart, count, T(0), partial, add); });
        }
        total = sum.total(total);
      });
}

bool all_finite(Tensor const& x) {
  return kernels::with_real(
      x.dtype(), [&](auto type) { return std::ranges::all_of(x.data<decltype(type)>(), [](auto v) { return std::isfinite(v); }); });
}

/// The largest (direction 1) or the smallest (−1). Where several are, each gets an equal share of the gradient.
Tensor extreme(char const* operation, Tensor const& x, Axes const& axes, bool keep, int direction) {
  Plan p = plan(operation, x, axes, keep);
  if (p.extent == 0) throw Error(fmt::format("{}: over no elements at all, in {}", operation, to_string(x.shape())));
  if (direction < 0) p.x = negate(p.x);  // of what has no node
  Tensor y = reduce(
      p, [](auto const* row, Index n) { return kernels::max_row(row, n); },
      []<class T>(T const* from, Index rows, Index apart, Index count, Columns<T>& total) {
        join_rows(from, rows, apart, count, -std::numeric_limits<T>::infinity(), total,
                  [](T& into, T v) { into = v > into || v != v ? v : into; });
      });
  if (direction < 0) y = negate(y);
  return record(operation, {x}, std::move(y), Keep{.inputs = all_inputs, .output = true}, [kept = p.kept](BackwardContext const& s) {
    std::vector<Index> const extents(kept.begin(), kept.end());
    Tensor const chosen = equal(s.x().detach(), reshape(s.y.detach(), extents));
    return std::vector{where(chosen, reshape(s.dy, extents) / sum_to(chosen, kept), like(0, s.dy))};
  });
}

/// The largest finite number of x's type.
double max_of(Tensor const& x) {
  return x.dtype() == DType::float32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
}

/// m + log Σ e^(x − m), m the largest. m is finite, so that a row of −∞ gives −∞ and not ∞ − ∞; NaN stays.
Tensor logsumexp_of(Tensor const& x, Axes const& axes, Plan const& p) {
  NoGrad const values;
  if (p.inner != 1 || p.extent == 0) {
    if (p.extent == 0) return Tensor::full(p.result, -std::numeric_limits<double>::infinity(), x.dtype());
    Tensor const m = clamp(max(x, axes, true), -max_of(x), max_of(x));
    return (log(sum(exp(x - m), axes, true)) + m).viewed(p.result);
  }
  return reduce(
      p,
      [](auto const* row, Index n) {
        using T = std::remove_cvref_t<decltype(*row)>;
        T const max_finite = std::numeric_limits<T>::max(), largest = kernels::max_row(row, n);
        T const m = largest > max_finite ? max_finite : largest < -max_finite ? -max_finite : largest;
        kernels::Lanes<T> const shift(m);
        return m + std::log(kernels::sum_row<T>(
                       n, [&](auto v) { return kernels::exponential(v - shift); }, row));
      },
      [](auto const*, Index, Index, Index, auto&) {});
}

/// e^(x − m)/Σ e^(x − m), as a graph: the gradient of logsumexp(). Zeros where all are −∞; where some are +∞ the limit in which these grow
/// alike: 1 over their number for each, and 0 for all others.
Tensor shares(Tensor const& x, Axes const& axes) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Tensor const largest = max(x.detach(), axes, true);
  if (std::ranges::none_of(largest.to_vector(), [](double m) { return std::isinf(m); })) {
    Tensor const e = exp(x - largest);
    return e / sum(e, axes, true);
  }
  Tensor const at_infinity = where(equal(x.detach(), like(infinity, x)), like(0, x), like(-infinity, x));
  Tensor const e = exp(where(equal(largest, like(infinity, x)), at_infinity, x - clamp(largest, -max_of(x), max_of(x))));
  Tensor const total = sum(e, axes, true);
  return e / where(equal(total.detach(), like(0, x)), like(1, x), total);
}

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

Tensor sum(Tensor const& x, Axes const& axes, bool keep) {
  Plan const p = plan("sum", x, axes, keep);
  return record("sum", {x}, summed(p, [](auto v) { return v; }), keep_nothing, [kept = p.kept](BackwardContext const& s) {
    return std::vector{expand(reshape(s.dy, {kept.begin(), kept.end()}), s.x().shape())};
  });
}

Tensor sum_of_squares(Tensor const& x, Axes const& axes, bool keep) {
  Plan const p = plan("sum_of_squares", x, axes, keep);
  return record("sum_of_squares", {x}, summed(p, [](auto v) { return v * v; }), keep_inputs, [kept = p.kept](BackwardContext const& s) {
    Tensor const dy = reshape(scale(s.dy, 2), {kept.begin(), kept.end()});
    return std::vector{recording() ? slope_times(dy, s.x())
                                   : kernels::map(
                                         s.x().shape(), [](auto d, auto v) { return slope_times(d, v); }, arithmetic_cost, dy, s.x())};
  });
}

Tensor sum_to(Tensor const& x, Shape const& shape) {
  if (x.shape() == shape) return x;
  Axes axes;
  auto const missing = static_cast<Index>(x.rank()) - static_cast<Index>(shape.rank());
  for (Index axis = 0; axis < static_cast<Index>(x.rank()); ++axis) {
    bool const repeated = axis < missing || (shape[axis - missing] == 1 && x.size(axis) != 1);
    if (!repeated && shape[axis - missing] != x.size(axis))
      throw Error(fmt::format("sum_to: {} does not come from {} by broadcasting", to_string(x.shape()), to_string(shape)));
    if (repeated) axes.push_back(axis);
  }
  return reshape(axes.empty() ? x : sum(x, axes), {shape.begin(), shape.end()});
}

Tensor mean(Tensor const& x, Axes const& axes, bool keep) {
  double const part = 1 / static_cast<double>(reduced_elements("mean", x, axes));
  Tensor y = scale(sum(x, axes, keep), part);
  return all_finite(y) ? y : sum(scale(x, part), axes, keep);  // the sum may leave the range where the mean does not
}

Tensor variance(Tensor const& x, Axes const& axes, bool keep, Index correction) {
  double const part = 1 / static_cast<double>(reduced_elements("variance", x, axes) - correction);
  Tensor const deviation = x - mean(x, axes, true);
  Tensor y = scale(sum_of_squares(deviation, axes, keep), part);
  return all_finite(y) || part < 0 ? y : sum_of_squares(scale(deviation, std::sqrt(part)), axes, keep);
}

Tensor max(Tensor const& x, Axes const& axes, bool keep) { return extreme("max", x, axes, keep, 1); }

Tensor min(Tensor const& x, Axes const& axes, bool keep) { return extreme("min", x, axes, keep, -1); }

Tensor logsumexp(Tensor const& x, Axes const& axes, bool keep) {
  Plan const p = plan("logsumexp", x, axes, keep);
  return record("logsumexp", {x}, logsumexp_of(x, axes, p), keep_inputs, [axes, kept = p.kept](BackwardContext const& s) {
    if (s.x().elements() == 0) return std::vector{Tensor::zeros(s.x().shape(), s.dy.dtype())};
    return std::vector{reshape(s.dy, {kept.begin(), kept.end()}) * shares(s.x(), axes)};
  });
}

Tensor argmax(Tensor const& x, Index axis) {
  Plan const p = plan("argmax", x, {axis}, false);
  if (p.extent == 0) throw Error(fmt::format("argmax: over no elements at all, in {}", to_string(x.shape())));
  Tensor y(p.result, DType::int64);
  kernels::with_real(x.dtype(), [&]<class T>(T) {
    T const* const from = p.x.data<T>().data();
    auto const out = y.mutable_data<std::int64_t>();
    for (Index o = 0; o < p.outer; ++o) {
      for (Index i = 0; i < p.inner; ++i) {
        Index best = 0;
        T const* const column = from + o * p.extent * p.inner + i;
        for (Index k = 1; k < p.extent; ++k) best = column[k * p.inner] > column[best * p.inner] ? k : best;
        at(out, o * p.inner + i) = best;
      }
    }
  });
  return y;
}

Tensor cumsum(Tensor const& x, Index axis, bool reverse) {
  require_real("cumsum", x);
  axis = axis_of("cumsum", x.shape(), axis);
  AxisSplit const p(x.shape(), axis);
  Tensor y(x.shape(), x.dtype());
  kernels::with_arrays(x, y, [&]<class T>(T const* from, T* out) {
    Index const blocks = (p.inner + columns_at_once - 1) / columns_at_once;
    double const cost = arithmetic_cost * static_cast<double>(p.extent * std::min(p.inner, columns_at_once));
    auto const sum_columns = [&](Index b) {
      Index const first = b % blocks * columns_at_once;
      Index const at = (b / blocks * p.extent + (reverse ? p.extent - 1 : 0)) * p.inner + first;
      Columns<T> total{};
      RunningSums<T>{from + at, out + at, reverse ? -p.inner : p.inner, std::min(columns_at_once, p.inner - first)}.over(
          0, p.extent, Columns<T>{}, total);
    };
    parallel_each(p.outer * blocks, cost, sum_columns, Cut::whole);
  });
  return record("cumsum", {x}, std::move(y), keep_nothing,
                [axis, reverse](BackwardContext const& s) { return std::vector{cumsum(s.dy, axis, !reverse)}; });
}

}  // namespace heed
