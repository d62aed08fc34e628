// Softmax and related functions: row kernels, whose rules are composed of operations where they must be differentiable again. In sparse
// variants a threshold τ is found from the sorted row; elements below it give exactly 0.

#include "autograd/ops/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "autograd/elementwise.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"
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
  parallel_each(
      x.elements() / n, cost * static_cast<double>(n), [&](Index r) { row(r * n); }, Cut::whole);
}

/// dx = y (dy − Σ dy y) over the last axis; a row of zeros (nothing visible) has the gradient zero by the same formula.
Tensor softmax_gradient(Tensor const& y, Tensor const& dy) {
  if (recording()) return y * (dy - sum(dy * y, {-1}, true));
  Tensor dx(y.shape(), y.dtype());
  kernels::with_real(y.dtype(), [&]<class T>(T) {
    T const* const p = y.data<T>().data();
    T const* const g = dy.data<T>().data();
    T* const out = dx.mutable_data<T>().data();
    for_rows(y, arithmetic_cost, [&](Index at) { kernels::softmax_row_backward(p + at, g + at, out + at, y.size(-1)); });
  });
  return dx;
}

/// Throws Error unless `visible` is a mask for the last axis of x.
void require_mask(char const* operation, Tensor const& x, Tensor const& visible) {
  require_same_real(operation, x, visible);
  if (x.rank() == 0 || broadcast(x.shape(), visible.shape(), operation) != x.shape())
    throw Error(fmt::format("{}: the mask {} does not broadcast to {}", operation, to_string(visible.shape()), to_string(x.shape())));
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
  kernels::with_arrays(x, y, [&](auto const* from, auto* out) {
    for_rows(x, transcendental_cost, [&](Index at) { kernels::softmax_row(from + at, out + at, x.size(-1)); });
  });
  return record("softmax", {x}, std::move(y), keep_output,
                [](BackwardContext const& s) { return std::vector{softmax_gradient(s.y, s.dy)}; });
}

Tensor log_softmax_last(Tensor const& x) {
  Tensor y(x.shape(), x.dtype());
  kernels::with_arrays(x, y, [&]<class T>(T const* from, T* out) {
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

/// τ with Σ max(z − τ, 0) = 1, z sorted downwards.
template <class T>
T sparsemax_threshold(std::vector<T> const& z) {
  T sum = 0;
  T threshold = 0;
  for (std::size_t k = 0; k < z.size(); ++k) {
    sum += z[k];
    if (1 + static_cast<T>(k + 1) * z[k] > sum) threshold = (sum - 1) / static_cast<T>(k + 1);
  }
  return threshold;
}

/// τ with Σ max(z − τ, 0)² = 1, z sorted downwards.
template <class T>
T entmax15_threshold(std::vector<T> const& z) {
  T sum = 0;
  T squares = 0;
  T threshold = 0;
  for (std::size_t k = 0; k < z.size(); ++k) {
    sum += z[k];
    squares += z[k] * z[k];
    auto const n = static_cast<T>(k + 1);
    T const mean = sum / n;
    T const delta = (1 - (squares - n * mean * mean)) / n;
    if (delta < 0) break;
    T const candidate = mean - std::sqrt(delta);
    if (candidate <= z[k]) threshold = candidate;
  }
  return threshold;
}

/// form(scale · x − τ) on what is visible of each row, 0 elsewhere; the row's maximum is taken off first, which keeps the sums small.
template <class T, class Threshold, class Form>
Tensor project_rows(Tensor const& x, Tensor const& visible, T scale, Threshold const& threshold, Form const& form) {
  Index const n = x.size(-1);
  Tensor y(x.shape(), x.dtype());
  if (n == 0) return y;
  T const* const in = x.data<T>().data();
  T const* const seen = visible.data<T>().data();
  T* const out = y.mutable_data<T>().data();
  parallel_for(x.elements() / n, 20 * static_cast<double>(n), [&](Index begin, Index end) {
    std::vector<T> sorted;
    for (Index r = begin; r < end; ++r) {
      T const* const row = in + r * n;
      sorted.clear();
      for (Index j = 0; j < n; ++j) {
        if (seen[r * n + j] != 0) sorted.push_back(scale * row[j]);
      }
      std::ranges::sort(sorted, std::greater<>());
      T const top = sorted.empty() ? T(0) : sorted.front();
      for (T& z : sorted) z -= top;
      T const tau = sorted.empty() ? T(0) : threshold(sorted);
      for (Index j = 0; j < n; ++j) out[r * n + j] = seen[r * n + j] != 0 ? form(std::max(scale * row[j] - top - tau, T(0))) : T(0);
    }
  });
  return y;
}

Tensor visible_like(char const* operation, Tensor const& x, Tensor const& visible) {
  require_mask(operation, x, visible);
  return expand(visible.detach(), x.shape());
}

/// dx = s (dy − Σ s dy / Σ s), with s the weight of each element in the support's mean: 1 on sparsemax's support, √y for entmax.
Tensor support_gradient(Tensor const& s, Tensor const& dy) {
  Tensor const total = sum(s, {-1}, true);
  return s * (dy - sum(s * dy, {-1}, true) / where(total > 0, total, Tensor::ones(total.shape(), total.dtype())));
}

}  // namespace

Tensor softmax(Tensor const& x, Index axis) { return along("softmax", x, axis, softmax_last); }

Tensor log_softmax(Tensor const& x, Index axis) { return along("log_softmax", x, axis, log_softmax_last); }

Tensor masked_softmax(Tensor const& x, Tensor const& visible) {
  require_mask("masked_softmax", x, visible);
  // Hidden keys become −∞ in the output's own array, and e^(−∞ − m) = 0 exactly.
  Tensor y = kernels::map(
      x.shape(), [](auto v, auto seen) { return where(seen != 0, v, like(-std::numeric_limits<double>::infinity(), v)); }, arithmetic_cost,
      x, visible);
  kernels::with_real(x.dtype(), [&]<class T>(T) {
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

Tensor sparsemax(Tensor const& x, Tensor const& visible) {
  Tensor const mask = visible_like("sparsemax", x, visible);
  Tensor y =
      kernels::with_real(x.dtype(), [&]<class T>(T) { return project_rows<T>(x, mask, 1, sparsemax_threshold<T>, std::identity()); });
  return record("sparsemax", {x}, std::move(y), keep_output,
                [](BackwardContext const& step) { return std::vector{support_gradient(step.y.detach() > 0, step.dy)}; });
}

Tensor entmax15(Tensor const& x, Tensor const& visible) {
  Tensor const mask = visible_like("entmax15", x, visible);
  Tensor y = kernels::with_real(
      x.dtype(), [&]<class T>(T) { return project_rows<T>(x, mask, T(0.5), entmax15_threshold<T>, [](T v) { return v * v; }); });
  return record("entmax15", {x}, std::move(y), keep_output, [](BackwardContext const& step) {
    Tensor const positive = step.y.detach() > 0;
    Tensor const one = Tensor::ones({}, step.y.dtype());
    return std::vector{support_gradient(positive * sqrt(where(positive, step.y, one)), step.dy)};
  });
}

}  // namespace heed
