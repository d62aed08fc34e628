#pragma once

#include "autograd/ops/softmax.hpp"
#include "nn/attention/align/rows.hpp"

namespace heed {

/// Rows of 1.5-entmax (Peters et al. 2019).
struct Entmax15Rows {
  static constexpr bool wants_scores = false;

  // Kept: the largest score, and the threshold below its half. Newton's steps for Σ max(z − τ, 0)² = 1 from below, z = e/2 less its
  // largest, until the solution for the support at hand has that support.
  template <class T>
  static void weights(kernels::AlignRow<T> const& row, bool again) {
    using V = kernels::Lanes<T>;
    if (!again) {
      T const max_score = kernels::max_row(row.scores, row.count);
      row.kept[0] = max_score, row.kept[1] = threshold(row.scores, row.count, max_score);
    }
    V const max_score(row.kept[0]), tau(row.kept[1]), zero(T(0)), half(T(0.5));
    kernels::transform_row<T>(
        row.weights, row.count,
        [&](V const& e) {
          V const y = kernels::greater(zero, (e - max_score) * half - tau);
          return y * y;
        },
        static_cast<T const*>(row.scores));
  }
  template <class T>
  static T threshold(T const* scores, Index n, T max_score) {
    T tau = -1;
    for (int step = 0; step < 100; ++step) {
      auto const at = sums_above<T>(scores, n, max_score, T(0.5), tau);
      if (!(at.count > 0)) return at.sum;  // a score is NaN
      T const mean = at.sum / at.count, rest = (1 - (at.squares - at.sum * mean)) / at.count;
      if (rest >= 0) {
        T const solution = tau + mean - std::sqrt(rest);
        if (sums_above<T>(scores, n, max_score, T(0.5), solution).count == at.count && solution >= tau) return solution;
      }
      T const newton = tau + (at.squares - 1) / (2 * at.sum);
      if (!(newton > tau)) return tau;
      tau = newton;
    }
    return tau;
  }
  template <class T>
  static void gradients(kernels::AlignRow<T> const& row) {
    using V = kernels::Lanes<T>;
    support_gradients(row, [](V const& a) { return xsimd::sqrt(a); });
  }
  static Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const&, Tensor const&) { return entmax15(scores, visible); }
};

}  // namespace heed
