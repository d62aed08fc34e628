#pragma once

#include <cmath>
#include <cstdint>

#include "autograd/kernels/rows.hpp"

/// Cross entropy of one row of logits x against a target distribution: 1 − ε at the target plus ε/n everywhere.
namespace heed::kernels {

template <class T>
struct RowLoss {
  double loss;
  T lse;  ///< log Σ eˣ, kept for the gradient
};

/// (1 − ε)(lse − x_t) + ε (lse − mean x).
template <class T>
RowLoss<T> cross_entropy_row(T const* x, std::int64_t n, std::int64_t target, double smoothing) {
  T const m = max_row(x, n);
  Lanes<T> const shift(m);
  T const total = sum_row<T>(
      n, [&](auto v) { return exponential(v - shift); }, x);
  T const lse = m + std::log(total);
  double loss = (1 - smoothing) * static_cast<double>(lse - x[target]);
  if (smoothing > 0) {
    T const sum = sum_row<T>(
        n, [](auto v) { return v; }, x);
    loss += smoothing * (static_cast<double>(lse) - static_cast<double>(sum) / static_cast<double>(n));
  }
  return {loss, lse};
}

/// out = (softmax x − target distribution) · factor; out may be x.
template <class T>
void cross_entropy_row_backward(T const* x, std::int64_t n, std::int64_t target, double smoothing, T lse, T factor, T* out) {
  Lanes<T> const log_sum_exp(lse), scale(factor), everywhere(static_cast<T>(smoothing / static_cast<double>(n)));
  transform_row<T>(
      out, n, [&](auto v) { return (exponential(v - log_sum_exp) - everywhere) * scale; }, x);
  out[target] -= static_cast<T>(1 - smoothing) * factor;
}

/// The derivative along u of the gradient with factor 1 is softmax x ∘ (u − u·softmax x); writes it times `factor` to out. Returns
/// u·(softmax x − target distribution).
template <class T>
double cross_entropy_row_second(T const* x, T const* u, std::int64_t n, std::int64_t target, double smoothing, T lse, T factor, T* out) {
  Lanes<T> const log_sum_exp(lse), scale(factor);
  T const mean = sum_row<T>(
      n, [&](auto v, auto along) { return exponential(v - log_sum_exp) * along; }, x, u);
  Lanes<T> const shift(mean);
  transform_row<T>(
      out, n, [&](auto v, auto along) { return exponential(v - log_sum_exp) * (along - shift) * scale; }, x, u);
  double of_target = (1 - smoothing) * static_cast<double>(u[target]);
  if (smoothing > 0) {
    T const sum = sum_row<T>(
        n, [](auto v) { return v; }, u);
    of_target += smoothing * static_cast<double>(sum) / static_cast<double>(n);
  }
  return static_cast<double>(mean) - of_target;
}

}  // namespace heed::kernels
