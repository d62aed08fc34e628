#pragma once

#include <cmath>
#include <limits>

#include "autograd/attention/row_statistics.hpp"
#include "autograd/kernels/rows.hpp"

namespace heed::kernels {

/// RowStatistics of one row of `count` keys; `distance`: i − j of the first, `first_key`: that is the first of all.
template <class T>
void measure_row(T const* scores, T const* weights, std::int64_t count, double distance, bool first_key, double* out) {
  using V = Lanes<T>;
  std::fill_n(out, row_statistics, std::numeric_limits<double>::quiet_NaN());
  auto const same = [](V const& x) { return x; };
  T const total = sum_row<T>(count, same, weights);
  auto const set = [&](RowStatistic which, T value) { out[static_cast<std::int64_t>(which)] = static_cast<double>(value); };
  if (count > 0) set(RowStatistic::total, total);
  if (!(total > 0)) return;
  V const part(1 / total), zero(T(0)), one(T(1)), mean(sum_row<T>(count, same, scores) / static_cast<T>(count));
  V entropy = zero, squares = zero, cubes = zero, spread = zero, apart = zero;
  alignas(64) T ramp[static_cast<std::size_t>(lanes<T>)];
  for (std::int64_t j = 0; j < lanes<T>; ++j) ramp[j] = static_cast<T>(j);
  V const steps = V::load_aligned(ramp);
  each_batch<T>(count, [&](std::int64_t j, auto const& batch) {
    V const p = batch.load(weights + j) * part;  // 0 beyond the row
    entropy -= p * xsimd::log(xsimd::select(p > zero, p, one));
    V const square = p * p;
    squares += square;
    cubes += square * p;
    apart += p * xsimd::abs(V(static_cast<T>(distance - static_cast<double>(j))) - steps);
    V e = batch.load(scores + j) - mean;
    if (std::int64_t const rest = count - j; rest < lanes<T>) e = keep_some<T>(e, rest);
    spread += e * e;
  });
  set(RowStatistic::entropy, lane_sum(entropy));
  set(RowStatistic::largest_weight, max_row(weights, count));
  set(RowStatistic::distance, lane_sum(apart));
  set(RowStatistic::first, first_key ? weights[0] / total : T(0));
  set(RowStatistic::squares, lane_sum(squares));
  set(RowStatistic::cubes, lane_sum(cubes));
  set(RowStatistic::score_mean, mean.get(0));
  if (count > 1) set(RowStatistic::score_variance, lane_sum(spread) / static_cast<T>(count - 1));
  set(RowStatistic::largest_score, max_row(scores, count));
}

}  // namespace heed::kernels
