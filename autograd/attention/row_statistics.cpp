#include "autograd/attention/row_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/kernels/dispatch.hpp"

namespace heed {

namespace {

/// The statistics of one row of scores and weights; `distance`: i − j of key 0; `from_start`: whether that is the sequence's first.
template <class T>
void measure(T const* scores, T const* weights, T const* visible, Index keys, double distance, bool from_start, double* out) {
  double const none = std::numeric_limits<double>::quiet_NaN();
  double total = 0, count = 0, largest = -std::numeric_limits<double>::infinity(), max_weight = largest, sum = 0;
  for (Index j = 0; j < keys; ++j) {
    if (visible[j] == 0) continue;
    auto const a = static_cast<double>(weights[j]), e = static_cast<double>(scores[j]);
    total += a, sum += e, count += 1;
    max_weight = std::max(max_weight, a), largest = std::max(largest, e);
  }
  std::fill_n(out, row_statistics, none);
  auto const set = [&](RowStatistic which, double value) { out[static_cast<Index>(which)] = value; };
  if (count > 0) set(RowStatistic::total, total);
  if (!(total > 0)) return;
  double entropy = 0, apart = 0, squares = 0, cubes = 0, spread = 0;
  double const mean = sum / count;
  for (Index j = 0; j < keys; ++j) {
    if (visible[j] == 0) continue;
    double const p = static_cast<double>(weights[j]) / total, e = static_cast<double>(scores[j]) - mean;
    entropy -= p > 0 ? p * std::log(p) : 0;
    apart += p * std::abs(distance - static_cast<double>(j));
    squares += p * p, cubes += p * p * p, spread += e * e;
  }
  set(RowStatistic::entropy, entropy);
  set(RowStatistic::largest_weight, max_weight);
  set(RowStatistic::distance, apart);
  set(RowStatistic::first, from_start && visible[0] != 0 ? static_cast<double>(weights[0]) / total : 0);
  set(RowStatistic::squares, squares);
  set(RowStatistic::cubes, cubes);
  set(RowStatistic::score_mean, mean);
  set(RowStatistic::score_variance, count > 1 ? spread / (count - 1) : none);
  set(RowStatistic::largest_score, std::isnan(mean) ? none : largest);
}

}  // namespace

Tensor attention_rows(Tensor const& scores, Tensor const& weights, Tensor const& visible, Index offset, Index first_key) {
  if (!scores.defined())
    return attention_rows(Tensor::full(weights.shape(), std::nan(""), weights.dtype()), weights, visible, offset, first_key);
  Index const batch = scores.size(0), heads = scores.size(1), queries = scores.size(2), keys = scores.size(3);
  Tensor result({batch, heads, queries, row_statistics}, DType::float64);
  double* out = result.mutable_data<double>().data();
  kernels::with_real(scores.dtype(), [&]<class T>(T) {
    T const *e = scores.data<T>().data(), *a = weights.data<T>().data(), *seen = visible.data<T>().data();
    for (Index b = 0; b < batch; ++b) {
      for (Index h = 0; h < heads; ++h) {
        Index const part = (visible.size(0) == 1 ? 0 : b) * visible.size(1) + (visible.size(1) == 1 ? 0 : h);
        for (Index i = 0; i < queries; ++i, out += row_statistics, e += keys, a += keys)
          measure(e, a, seen + (part * queries + i) * keys, keys, static_cast<double>(offset + i), first_key == 0, out);
      }
    }
  });
  return result;
}

}  // namespace heed
