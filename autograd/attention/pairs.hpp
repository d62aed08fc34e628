#pragma once

#include <memory>
#include <tuple>
#include <vector>

#include "autograd/attention/attention.hpp"

/// The interface of scores and aligns to the attention kernels. Formulas for them: pair_formula.hpp, and next to each align.
namespace heed {

namespace kernels {

/// Queries [n, d] and keys [m, d] of one head, with strides, and the weights w [d] of the sum (null: it has none).
template <class T>
struct PairRows {
  T const* query;
  Index query_stride;
  T const* key;
  Index key_stride;
  T const* weight;
  Index queries, keys, width;
};

/// s_ij = Σ_c f(q_ic, k_jc, w_c) of one head. Works on blocks of queries: rows first …, row i attending to ranges[i] within `all`. A
/// block's matrices [rows, stride] start at key all.first, and each row has room for a batch of lanes beyond its last key.
template <class T>
class HeadSum {
 public:
  virtual ~HeadSum() = default;
  /// Sums over the keys of each row's range; undefined outside it.
  virtual void sums(Index first, std::vector<KeyRange> const& ranges, KeyRange all, T* s, Index stride) const = 0;
  /// From ds, which is 0 outside the ranges: sets dq [rows, dq_stride], adds to dw, and accumulates the gradients of the keys.
  virtual void gradients(Index first, Index rows, KeyRange all, T const* ds, Index stride, T* dq, Index dq_stride, T* dw) = 0;
  /// Adds the accumulated gradients of the keys to dk [m, stride].
  virtual void add_keys(T* dk, Index stride) const = 0;

  /// Second derivatives along a direction (q', k', w'), in the head's own layout. With s' the derivative of the sums along it, second()
  /// sets s' [rows, stride] and computes the gradients of Σ_ij ds_ij s'_ij, as gradients() does those of Σ_ij ds_ij s_ij, over all keys.
  virtual void along(PairRows<T> const& direction) = 0;
  virtual void second(Index first, Index rows, T const* ds, T* sums_along, Index stride, T* dq, Index dq_stride, T* dw) = 0;
};

/// A stretch of one query's row: sums to be turned into scores, and what the finish depends on. Null or 0: absent.
template <class T>
struct FinishRow {
  T* scores;      ///< in: sums, out: scores; in the derivative, in: the scores' gradients, out: the sums'
  T const* sums;  ///< in the derivative
  Index count;
  double distance;     ///< i − j of the first key; decreases by one per key
  double root_width;   ///< √d
  T query;             ///< α
  T const* keys;       ///< β
  T const* parameter;  ///< p
  Index parameters;
  T* dquery = nullptr;  ///< added to, as are the next two
  T* dkeys = nullptr;
  T* dparameter = nullptr;
};

/// One query's row of scores and weights over the keys of its range.
template <class T>
struct AlignRow {
  T* scores;    ///< in the derivative: if the align wants_scores()
  T* weights;   ///< may be the scores' array
  T* dweights;  ///< in the derivative: become the scores' gradients
  Index count;
  double seen;  ///< number of keys that the query sees, inside its range or not
  T parameter;
  T* dparameter;  ///< added to
  T* kept;        ///< two numbers that the forward pass keeps for the derivative
};

}  // namespace kernels

/// A score's sum: Σ_c f(q_ic, k_jc, w_c).
class PairSum {
 public:
  virtual ~PairSum() = default;
  virtual std::unique_ptr<kernels::HeadSum<float>> of_head(kernels::PairRows<float> const& rows) const = 0;
  virtual std::unique_ptr<kernels::HeadSum<double>> of_head(kernels::PairRows<double> const& rows) const = 0;
  /// query [B, H, n, d], key [B, H, m, d], weight [H, d] or undefined → [B, H, n, m].
  virtual Tensor composed(Tensor const& query, Tensor const& key, Tensor const& weight) const = 0;
};

/// What a finish depends on, as Tensors that broadcast to [B, H, n, m].
struct FinishInputs {
  Tensor distance, query, key, parameter, second_parameter;
  double root_width;
};

/// A score's finish: g(s; i − j, α_i, β_j, p).
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
struct RowAlign {
  template <class T>
  struct Loops {
    /// Sets the weights, and in `kept` what the derivative needs; `again`: reads `kept` instead of writing it.
    void (*weights)(kernels::AlignRow<T> const& row, bool again);
    /// Turns the weights' gradients into the scores', in place.
    void (*gradients)(kernels::AlignRow<T> const& row);
  };
  std::tuple<Loops<float>, Loops<double>> loops;
  bool wants_scores;  ///< whether the derivative reads the scores as well as the weights
  /// Weights of scores [B, H, n, m]: `visible` is 1 at the keys in a row's range, `seen` [B or 1, 1, n, 1] the number of keys its query
  /// sees; parameter [H], or [B, H, n].
  Tensor (*composed)(Tensor const& scores, Tensor const& visible, Tensor const& seen, Tensor const& parameter);
};

/// Σ_c f(q_ic, k_jc, w_c) of every pair: query [B, n, H·d], key [B, m, G·d], weight [H, d] or undefined → [B, H, n, m]; head h reads group
/// ⌊h G/H⌋. The kernels for first and second derivatives hold nothing of size [n, m, d].
Tensor pair_sums(std::shared_ptr<PairSum const> const& sum, Tensor const& query, Tensor const& key, Tensor const& weight, Index heads,
                 Index groups);

}  // namespace heed
