// Softmax and related functions: row kernels, whose rules are composed of operations where they must be differentiable again.

#include "autograd/ops/softmax.hpp"

#include <cmath>
#include <limits>

#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/formula.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/parallel.hpp"
#include "autograd/shape.hpp"

namespace heed {

namespace {

/// Calls row(index) for each of the rows of x's last axis, on the pool.
template <class Row>
void for_rows(Tensor const& x, double cost, Row const& row) {
  Index const n = x.size(-1);
  if (n == 0) return;
  parallel_for(x.elements() / n, cost * static_cast<double>(n), [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) row(r * n);
  });
}

/// dx = y (dy − Σ dy y) over the last axis; a row of zeros (nothing visible) has the gradient zero by the same formula.
Tensor softmax_gradient(Tensor const& y, Tensor const& dy) {
  if (recording()) return y * (dy - sum(dy * y, {-1}, true));
  Tensor dx(y.shape(), y.dtype());
  kernels::with_real(y.dtype(), [&](auto type) {
    using T = decltype(type);
    T const* const p = y.data<T>().data();
    T const* const g = dy.data<T>().data();
    T* const out = dx.mutable_data<T>().data();
    for_rows(y, arithmetic_cost, [&](Index at) { kernels::softmax_row_backward(p + at, g + at, out + at, y.size(-1)); });
  });
  return dx;
}

/// f along the last axis, or between two transpositions.
template <class F>
Tensor along(char const* operation, Tensor const& x, Index axis, F const& f) {
  require_real(operation, x);
  if (x.rank() == 0) throw Error(fmt::format("{}: wants at least one axis, not a scalar", operation));
  if (axis_of(operation, x.shape(), axis) + 1 == static_cast<Index>(x.rank())) return f(x);
  return transpose(f(transpose(x, axis, -1)), axis, -1);
}

Tensor softmax_last(Tensor const& x) {
  Tensor y(x.shape(), x.dtype());
  kernels::with_real(x.dtype(), [&](auto type) {
    using T = decltype(type);
    T const* const from = x.data<T>().data();
    T* const out = y.mutable_data<T>().data();
    for_rows(x, transcendental_cost, [&](Index at) { kernels::softmax_row(from + at, out + at, x.size(-1)); });
  });
  return record("softmax", {x}, std::move(y), keep_output,
                [](BackwardContext const& s) { return std::vector{softmax_gradient(s.y, s.dy)}; });
}

Tensor log_softmax_last(Tensor const& x) {
  Tensor y(x.shape(), x.dtype());
  kernels::with_real(x.dtype(), [&](auto type) {
    using T = decltype(type);
    T const* const from = x.data<T>().data();
    T* const out = y.mutable_data<T>().data();
    Index const n = x.rank() == 0 ? 0 : x.size(-1);
    for_rows(x, transcendental_cost, [&](Index at) {
      T const m = kernels::max_row(from + at, n);
      kernels::Lanes<T> const shift(m + std::log(kernels::exp_row(from + at, m, out + at, n)));
      kernels::transform_row<T>(
          out + at, n, [&](auto v) { return v - shift; }, from + at);
    });
  });
  return record("log_softmax", {x}, std::move(y), keep_output,
                [](BackwardContext const& s) { return std::vector{s.dy - exp(s.y) * sum(s.dy, {-1}, true)}; });
}

}  // namespace

Tensor softmax(Tensor const& x, Index axis) { return along("softmax", x, axis, softmax_last); }

Tensor log_softmax(Tensor const& x, Index axis) { return along("log_softmax", x, axis, log_softmax_last); }

Tensor masked_softmax(Tensor const& x, Tensor const& visible) {
  require_same_real("masked_softmax", x, visible);
  if (broadcast(x.shape(), visible.shape(), "masked_softmax") != x.shape() || x.rank() == 0)
    throw Error(fmt::format("masked_softmax: the mask {} does not broadcast to {}", to_string(visible.shape()), to_string(x.shape())));
  // Hidden keys become −∞ in the output's own array, and e^(−∞ − m) = 0 exactly.
  Tensor y = kernels::map(
      x.shape(), [](auto v, auto seen) { return where(seen != 0, v, like(-std::numeric_limits<double>::infinity(), v)); }, arithmetic_cost,
      x, visible);
  kernels::with_real(x.dtype(), [&](auto type) {
    using T = decltype(type);
    T* const out = y.mutable_data<T>().data();
    Index const n = x.size(-1);
    for_rows(x, transcendental_cost, [&](Index at) {
      if (kernels::max_row(out + at, n) == -std::numeric_limits<T>::infinity()) {
        std::fill_n(out + at, n, T(0));
      } else {
        kernels::softmax_row(out + at, out + at, n);
      }
    });
  });
  return record("masked_softmax", {x}, std::move(y), keep_output,
                [](BackwardContext const& s) { return std::vector{softmax_gradient(s.y, s.dy)}; });
}

Tensor softmax_with_sink(Tensor const& x, Tensor const& visible, Tensor const& sinks) {
  if (x.rank() != 4 || sinks.shape() != Shape{x.size(1)})
    throw Error(
        fmt::format("softmax_with_sink: x {} and sinks {} are not [B, H, n, m] and [H]", to_string(x.shape()), to_string(sinks.shape())));
  Tensor const one_more = expand(reshape(sinks, {1, -1, 1, 1}), {x.size(0), x.size(1), x.size(2), 1});
  Tensor const weights = masked_softmax(concatenate({x, one_more}, -1), pad(visible, -1, 0, 1, 1));
  return slice(weights, -1, 0, x.size(-1));
}

}  // namespace heed
