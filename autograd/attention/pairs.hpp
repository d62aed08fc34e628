#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "autograd/tensor.hpp"

/// What the attention kernels ask of a score and of an align; how these are written as formulas: pair_formula.hpp, and beside each align.
namespace heed {

namespace kernels {

/// The keys that a query attends to, [first, last).
struct KeyRange {
  std::int64_t first, last;
};

/// Queries [n, d] and keys [m, d] of one head, with strides, and the weights w [d] of the sum (null: it has none).
template <class T>
struct PairRows {
  T const* query;
  std::int64_t query_stride;
  T const* key;
  std::int64_t key_stride;
  T const* weight;
  std::int64_t queries, keys, width;
};

/// s_ij = Σ_c f(q_ic, k_jc, w_c) of one head, prepared. Works on blocks of queries: rows first …, row i attending to ranges[i] within
/// `all`. A block's matrices [rows, stride] begin at key all.first, and a row has room for a batch of lanes behind its last key.
template <class T>
class HeadSum {
 public:
  virtual ~HeadSum() = default;
  /// The sums of the keys of each row's range; what lies outside it is undefined.
  virtual void sums(std::int64_t first, std::vector<KeyRange> const& ranges, KeyRange all, T* s, std::int64_t stride) const = 0;
  /// From ds, which is 0 outside the ranges: dq [rows, dq_stride] (set), dw (added to), and the gradients of the keys, which it keeps.
  virtual void gradients(std::int64_t first, std::int64_t rows, KeyRange all, T const* ds, std::int64_t stride, T* dq,
                         std::int64_t dq_stride, T* dw) = 0;
  /// Adds the gradients of the keys that it has kept to dk [m, stride].
  virtual void add_keys(T* dk, std::int64_t stride) const = 0;

  /// Second derivatives are along a direction (q', k', w'), rows as the head's own. With s' the sums' derivative along it, second() sets s'
  /// [rows, stride] and takes Σ_ij ds_ij s'_ij for what gradients() takes Σ_ij ds_ij s_ij for, of all keys.
  virtual void along(PairRows<T> const& direction) = 0;
  virtual void second(std::int64_t first, std::int64_t rows, T const* ds, T* sums_along, std::int64_t stride, T* dq, std::int64_t dq_stride,
                      T* dw) = 0;
};

/// A stretch of one query's row: scores from sums, with what they depend on beside. Null or 0: not there.
template <class T>
struct FinishRow {
  T* scores;      ///< the sums, which become scores; in the derivative the scores' gradients, which become the sums'
  T const* sums;  ///< in the derivative
  std::int64_t count;
  double distance;     ///< i − j of the first; the next ones' are one less each
  double root_width;   ///< √d
  T query;             ///< α
  T const* keys;       ///< β
  T const* parameter;  ///< p
  std::int64_t parameters;
  T* dquery;  ///< added to, as the next two
  T* dkeys;
  T* dparameter;
};

/// One query's row of scores and weights over the keys of its range.
template <class T>
struct AlignRow {
  T* scores;    ///< in the derivative: if the align wants_scores()
  T* weights;   ///< may be the scores' array
  T* dweights;  ///< in the derivative: become the scores' gradients
  std::int64_t count;
  double seen;  ///< keys that the query sees, in its range or not
  T parameter;
  T* dparameter;  ///< added to
  T* kept;        ///< two numbers that the forward pass keeps for the derivative
};

}  // namespace kernels

/// Σ_c f(q_ic, k_jc, w_c).
class PairSum {
 public:
  virtual ~PairSum() = default;
  virtual std::unique_ptr<kernels::HeadSum<float>> of_head(kernels::PairRows<float> const& rows) const = 0;
  virtual std::unique_ptr<kernels::HeadSum<double>> of_head(kernels::PairRows<double> const& rows) const = 0;
  /// Of query [B, H, n, d], key [B, H, m, d] and weight [H, d] or undefined: [B, H, n, m].
  virtual Tensor composed(Tensor const& query, Tensor const& key, Tensor const& weight) const = 0;
};

/// What a finish depends on, as Tensors that broadcast to [B, H, n, m].
struct FinishInputs {
  Tensor distance, of_query, of_key, parameter, second_parameter;
  double root_width;
};

/// g(s; i − j, α_i, β_j, p).
class PairFinish {
 public:
  virtual ~PairFinish() = default;
  virtual void scores(kernels::FinishRow<float> const& row) const = 0;
  virtual void scores(kernels::FinishRow<double> const& row) const = 0;
  virtual void gradients(kernels::FinishRow<float> const& row) const = 0;
  virtual void gradients(kernels::FinishRow<double> const& row) const = 0;
  virtual Tensor composed(Tensor const& sums, FinishInputs const& inputs) const = 0;
};

/// Weights from the scores of one row.
class RowAlign {
 public:
  virtual ~RowAlign() = default;
  /// Sets the weights, and what the derivative needs in `kept`; `again`: by what was kept.
  virtual void weights(kernels::AlignRow<float> const& row, bool again) const = 0;
  virtual void weights(kernels::AlignRow<double> const& row, bool again) const = 0;
  /// The scores' gradients from those of the weights, in their array.
  virtual void gradients(kernels::AlignRow<float> const& row) const = 0;
  virtual void gradients(kernels::AlignRow<double> const& row) const = 0;
  /// Whether the derivative reads the scores beside the weights.
  virtual bool wants_scores() const { return false; }
  /// Of scores [B, H, n, m]: `visible` is 1 at the keys of a row's range, `seen` [B or 1, 1, n, 1] how many its query sees; parameter [H].
  virtual Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const& seen, Tensor const& parameter) const = 0;
};

/// Σ_c f(q_ic, k_jc, w_c) of every pair: query [B, n, H·d], key [B, m, G·d], weight [H, d] or undefined → [B, H, n, m], head h reading
/// group ⌊h G/H⌋. First and second derivatives by kernels that hold nothing of size [n, m, d].
Tensor pair_sums(std::shared_ptr<PairSum const> const& sum, Tensor const& query, Tensor const& key, Tensor const& weight,
                 std::int64_t heads, std::int64_t groups);

}  // namespace heed
