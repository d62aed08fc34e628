#pragma once

#include "nn/attention/align/rows.hpp"

namespace heed {

/// Of z ≤ 0 beyond a threshold τ: how many there are, and the sums of z − τ and of its square.
template <class T>
struct Beyond {
  T count, sum, squares;
};

/// Of z_j = scale · (x_j − most).
template <class T>
Beyond<T> beyond(T const* x, std::int64_t n, T most, T scale, T threshold) {
  using V = kernels::Lanes<T>;
  V const top(most), factor(scale), tau(threshold), zero(T(0)), one(T(1));
  V count = zero, sum = zero, squares = zero;
  kernels::each_batch<T>(n, [&](std::int64_t j, auto const& batch) {
    std::int64_t const rest = std::min(n - j, kernels::lanes<T>);
    V y = kernels::greater(zero, (batch.load(x + j) - top) * factor - tau);
    if (rest < kernels::lanes<T>) y = kernels::keep_some<T>(y, rest);
    count += xsimd::select(y > zero, one, zero);
    sum += y;
    squares += y * y;
  });
  return {kernels::lane_sum(count), kernels::lane_sum(sum), kernels::lane_sum(squares)};
}

/// From weights' gradients those of scores, where the weights sum to one and move with weight s_j > 0 on their support: s_j (d_j − Σ s d /
/// Σ s).
template <class T, class Share>
void support_gradients(kernels::AlignRow<T> const& row, Share const& share) {
  using V = kernels::Lanes<T>;
  T const total = kernels::sum_row<T>(row.count, share, static_cast<T const*>(row.weights));
  T const inner = kernels::sum_row<T>(
      row.count, [&](V const& a, V const& d) { return share(a) * d; }, static_cast<T const*>(row.weights),
      static_cast<T const*>(row.dweights));
  V const mean(total > 0 ? inner / total : T(0));
  kernels::transform_row<T>(
      row.dweights, row.count, [&](V const& a, V const& d) { return share(a) * (d - mean); }, static_cast<T const*>(row.weights),
      static_cast<T const*>(row.dweights));
}

}  // namespace heed
