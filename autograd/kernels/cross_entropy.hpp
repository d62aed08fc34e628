#pragma once

#include <algorithm>
#include <cmath>

#include "autograd/index.hpp"
#include "autograd/kernels/rows.hpp"

/// Cross entropy of one row of logits x against a target distribution: 1 − ε at the target plus ε/m at each of the m classes that can be
/// chosen.
namespace heed::kernels {

inline constexpr double min_choice = -5e8;  ///< a class with a lower logit cannot be chosen (no_choice)

/// Σ f of the elements that can be chosen; `of` are the logits.
template <class T>
T sum_of_choices(T const* f, T const* of, Index n) {
  Lanes<T> const min_logit(static_cast<T>(min_choice)), none(T(0));
  return sum_row<T>(
      n, [&](auto v, auto logit) { return xsimd::select(logit > min_logit, v, none); }, f, of);
}

/// How many classes can be chosen.
template <class T>
double choices(T const* x, Index n) {
  return static_cast<double>(std::count_if(x, x + n, [](T logit) { return logit > static_cast<T>(min_choice); }));
}

template <class T>
struct RowLoss {
  double loss;
  T lse;  ///< log Σ eˣ, kept for the gradient
};

/// (1 − ε)(lse − x_t) + ε (lse − mean x).
template <class T>
RowLoss<T> cross_entropy_row(T const* x, Index n, Index target, double smoothing) {
  T const m = max_row(x, n);
  Lanes<T> const shift(m);
  T const total = sum_row<T>(
      n, [&](auto v) { return exponential(v - shift); }, x);
  T const lse = m + std::log(total);
  double loss = (1 - smoothing) * static_cast<double>(lse - x[target]);
  if (smoothing > 0) {
    loss += smoothing * (static_cast<double>(lse) - static_cast<double>(sum_of_choices(x, x, n)) / choices(x, n));
  }
  return {loss, lse};
}

/// out = (softmax x − target distribution) · factor; out may be x.
template <class T>
void cross_entropy_row_backward(T const* x, Index n, Index target, double smoothing, T lse, T factor, T* out) {
  Lanes<T> const log_sum_exp(lse), scale(factor), min_logit(static_cast<T>(min_choice)), none(T(0));
  Lanes<T> const share(smoothing > 0 ? static_cast<T>(smoothing / choices(x, n)) : T(0));
  transform_row<T>(
      out, n, [&](auto v) { return (exponential(v - log_sum_exp) - xsimd::select(v > min_logit, share, none)) * scale; }, x);
  out[target] -= static_cast<T>(1 - smoothing) * factor;
}

/// The derivative along u of the gradient with factor 1 is softmax x ∘ (u − u·softmax x); writes it times `factor` to out. Returns
/// u·(softmax x − target distribution).
template <class T>
double cross_entropy_row_second(T const* x, T const* u, Index n, Index target, double smoothing, T lse, T factor, T* out) {
  Lanes<T> const log_sum_exp(lse), scale(factor);
  T const mean = sum_row<T>(
      n, [&](auto v, auto along) { return exponential(v - log_sum_exp) * along; }, x, u);
  Lanes<T> const shift(mean);
  transform_row<T>(
      out, n, [&](auto v, auto along) { return exponential(v - log_sum_exp) * (along - shift) * scale; }, x, u);
  double of_target = (1 - smoothing) * static_cast<double>(u[target]);
  if (smoothing > 0) {
    of_target += smoothing * static_cast<double>(sum_of_choices(u, x, n)) / choices(x, n);
  }
  return static_cast<double>(mean) - of_target;
}

}  // namespace heed::kernels
