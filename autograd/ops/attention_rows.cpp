#include "autograd/attention_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heed {

namespace {

/// Of one row: `distance` is i − j of the key 0.
void measure(double const* scores, double const* weights, double const* visible, std::int64_t keys, double distance, double* out) {
  double const none = std::numeric_limits<double>::quiet_NaN();
  double total = 0, count = 0, largest = -std::numeric_limits<double>::infinity(), most = largest, sum = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    if (visible[j] == 0) continue;
    total += weights[j], sum += scores[j], count += 1;
    most = std::max(most, weights[j]), largest = std::max(largest, scores[j]);
  }
  std::fill_n(out, row_numbers, none);
  auto const set = [&](RowNumber which, double value) { out[static_cast<std::int64_t>(which)] = value; };
  if (count > 0) set(RowNumber::total, total);
  if (!(total > 0)) return;
  double entropy = 0, apart = 0, squares = 0, cubes = 0, spread = 0;
  double const mean = sum / count;
  for (std::int64_t j = 0; j < keys; ++j) {
    if (visible[j] == 0) continue;
    double const p = weights[j] / total, e = scores[j] - mean;
    entropy -= p > 0 ? p * std::log(p) : 0;
    apart += p * std::abs(distance - static_cast<double>(j));
    squares += p * p, cubes += p * p * p, spread += e * e;
  }
  set(RowNumber::entropy, entropy);
  set(RowNumber::largest_weight, most);
  set(RowNumber::distance, apart);
  set(RowNumber::first, visible[0] != 0 ? weights[0] / total : 0);
  set(RowNumber::squares, squares);
  set(RowNumber::cubes, cubes);
  set(RowNumber::score_mean, mean);
  set(RowNumber::score_variance, count > 1 ? spread / (count - 1) : none);
  set(RowNumber::largest_score, largest);
}

}  // namespace

Tensor attention_rows(Tensor const& scores, Tensor const& weights, Tensor const& visible, std::int64_t offset) {
  std::int64_t const batch = scores.size(0), heads = scores.size(1), queries = scores.size(2), keys = scores.size(3);
  Tensor const e = scores.detach().to(DType::float64), a = weights.detach().to(DType::float64);
  Tensor const seen = expand(visible.detach().to(DType::float64), {batch, heads, queries, keys});
  Tensor result({batch, heads, queries, row_numbers}, DType::float64);
  double* out = result.mutable_data<double>().data();
  for (std::int64_t row = 0; row < batch * heads * queries; ++row, out += row_numbers) {
    std::int64_t const at = row * keys;
    measure(e.data<double>().data() + at, a.data<double>().data() + at, seen.data<double>().data() + at, keys,
            static_cast<double>(offset + row % queries), out);
  }
  return result;
}

}  // namespace heed
