#pragma once

#include <cstdint>

#include "autograd/tensor.hpp"

namespace heed {

/// Statistics of one query's row of attention, over the n keys of its range: p_j = a_j / Σ_j a_j, its weights before dropout, and e_j,
/// its scores. Of a row without a weight all but the first are NaN, of one without a key all.
enum class RowStatistic : std::int64_t {
  total,           ///< Σ_j a_j
  entropy,         ///< −Σ_j p_j log p_j
  largest_weight,  ///< max_j a_j
  distance,        ///< Σ_j p_j |i − j|, in places
  first,           ///< p of the first key of all
  squares,         ///< Σ_j p_j²
  cubes,           ///< Σ_j p_j³
  score_mean,      ///< ē = Σ_j e_j / n
  score_variance,  ///< Σ_j (e_j − ē)² / (n − 1); NaN for a row of one key
  largest_score,   ///< max_j e_j
};
inline constexpr std::int64_t row_statistics = 10;

/// All of them, in this order, of scores and weights [B, H, n, m], where `visible` [B or 1, H or 1, n, m] is 1 at the keys of a row's
/// range; the first query stands at `offset`. float64 [B, H, n, row_statistics]. What the kernels measure on their way is tested against
/// it.
Tensor attention_rows(Tensor const& scores, Tensor const& weights, Tensor const& visible, std::int64_t offset);

}  // namespace heed
