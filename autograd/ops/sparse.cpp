// Sparse variants of softmax: a threshold τ is found from the sorted row; elements below it give exactly 0.

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "autograd/kernels/dispatch.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/formula.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/parallel.hpp"

namespace heed {

namespace {

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

/// y = shape(x − τ) on what is visible of each row, 0 elsewhere. `scale`: what x is multiplied by first; the row's maximum is taken off,
/// which changes nothing but keeps the sums small.
template <class T, class Threshold, class Form>
void project_rows(Tensor const& x, Tensor const& visible, T scale, Threshold const& threshold, Form const& form, Tensor& y) {
  Index const n = x.size(-1);
  if (n == 0) return;
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
}

Tensor visible_like(char const* operation, Tensor const& x, Tensor const& visible) {
  require_same_real(operation, x, visible);
  if (x.rank() == 0 || broadcast(x.shape(), visible.shape(), operation) != x.shape())
    throw Error(fmt::format("{}: the mask {} does not broadcast to {}", operation, to_string(visible.shape()), to_string(x.shape())));
  NoGrad const constant;
  return kernels::map(
      x.shape(), [](auto v) { return v; }, arithmetic_cost, visible);
}

/// dx = s (dy − Σ s dy / Σ s), with s the weight of each element in the support's mean: 1 on sparsemax's support, √y for entmax.
Tensor support_gradient(Tensor const& s, Tensor const& dy) {
  Tensor const total = sum(s, {-1}, true);
  return s * (dy - sum(s * dy, {-1}, true) / where(total > 0, total, Tensor::ones(total.shape(), total.dtype())));
}

}  // namespace

Tensor sparsemax(Tensor const& x, Tensor const& visible) {
  Tensor const mask = visible_like("sparsemax", x, visible);
  Tensor y(x.shape(), x.dtype());
  kernels::with_real(x.dtype(), [&](auto type) {
    using T = decltype(type);
    project_rows<T>(
        x, mask, 1, sparsemax_threshold<T>, [](T v) { return v; }, y);
  });
  return record("sparsemax", {x}, std::move(y), keep_output,
                [](BackwardContext const& step) { return std::vector{support_gradient(step.y.detach() > 0, step.dy)}; });
}

Tensor entmax15(Tensor const& x, Tensor const& visible) {
  Tensor const mask = visible_like("entmax15", x, visible);
  Tensor y(x.shape(), x.dtype());
  kernels::with_real(x.dtype(), [&](auto type) {
    using T = decltype(type);
    project_rows<T>(
        x, mask, T(0.5), entmax15_threshold<T>, [](T v) { return v * v; }, y);
  });
  return record("entmax15", {x}, std::move(y), keep_output, [](BackwardContext const& step) {
    Tensor const positive = step.y.detach() > 0;
    Tensor const one = Tensor::ones({}, step.y.dtype());
    return std::vector{support_gradient(positive * sqrt(where(positive, step.y, one)), step.dy)};
  });
}

}  // namespace heed
