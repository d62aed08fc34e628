#pragma once

#include "autograd/tensor.hpp"

namespace heed {

/// Statistics of one query's row of attention over the n keys in its range: a_j the weights before dropout, p_j = a_j / Σ_j a_j, and e_j
/// the scores. Where all weights are 0, all but the first are NaN; for a row without keys, all are.
enum class RowStatistic : Index {
  total,           ///< Σ_j a_j
  entropy,         ///< −Σ_j p_j log p_j
  largest_weight,  ///< max_j a_j
  distance,        ///< Σ_j p_j |i − j|, in positions
  first,           ///< p of the sequence's first key
  squares,         ///< Σ_j p_j²
  cubes,           ///< Σ_j p_j³
  score_mean,      ///< ē = Σ_j e_j / n
  score_variance,  ///< Σ_j (e_j − ē)² / (n − 1); NaN for a row of one key
  largest_score,   ///< max_j e_j
};
inline constexpr Index row_statistics = 10;

/// All of them in this order: scores (undefined: none, whose statistics are NaN) and weights [B, H, n, m], `visible` [B or 1, H or 1, n, m]
/// 1 at the keys in a row's range, first query at position `offset` → float64 [B, H, n, row_statistics]; offset and first_key as in
/// Visibility. The reference for what the kernels measure.
Tensor attention_rows(Tensor const& scores, Tensor const& weights, Tensor const& visible, Index offset, Index first_key = 0);

}  // namespace heed
