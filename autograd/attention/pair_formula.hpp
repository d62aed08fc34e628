#pragma once

#include <algorithm>
#include <concepts>
#include <memory>
#include <vector>

#include "autograd/attention/pairs.hpp"
#include "autograd/attention/reverse.hpp"
#include "autograd/elementwise.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"

/// Scores as formulas: pair_sum(f) and pair_finish(g) make what the attention kernels and their reference take, from generic lambdas
///
///   f(q, k) or f(q, k, w)     summed over the elements of a query and a key
///   g(s, at)                  the score from the sum, where `at` has distance (i − j), query (α_i), key (β_j), parameter and
///                             second_parameter, and root_width, the number √d
///
/// A formula may be written with
///
///   + − * / of two of its numbers, or of one and a constant (`2 * q`, `s / 3.0`), and − of one
///   abs, exp, log, log1p, sqrt, tanh, sigmoid, sin, cos; pow(x, c) with a constant c; maximum(a, b), minimum(a, b)
///   like(c, x): the constant c as a number beside x, such as like(1 / at.root_width, s)
///
/// The lambda may not branch on a number's value (use maximum, minimum and abs). One formula serves three purposes: evaluation over batches
/// of keys, its gradients over batches (reverse.hpp), and Tensors, with derivatives of any order. This header includes xsimd; loops use the
/// vector width that the including file is compiled for.
namespace heed {

namespace kernels {

template <class F, class V>
auto at_pair(F const& f, V const& q, V const& k, V const& w) {
  using namespace reverse;
  if constexpr (std::invocable<F const&, Variable<V, 0>, Variable<V, 1>, Variable<V, 2>>)
    return f(Variable<V, 0>{q}, Variable<V, 1>{k}, Variable<V, 2>{w});
  else
    return f(Variable<V, 0>{q}, Variable<V, 1>{k});
}

/// Accumulates the derivatives of a few numbers.
template <class V, std::size_t N>
struct KernelSums {
  V sum[N];
  template <std::size_t I>
  void add(V const& d) {
    sum[I] += d;
  }
};

/// A head's keys transposed, [d, padded], so that a batch holds one element of several keys; padding repeats the last key.
template <class T>
struct TransposedKeys {
  explicit TransposedKeys(PairRows<T> const& rows) : padded((rows.keys + step - 1) / step * step + step), numbers(of(rows)) {}

  std::vector<T> of(PairRows<T> const& rows) const {
    std::vector<T> keys(static_cast<std::size_t>(rows.width * padded));
    for (Index c = 0; c < rows.width && rows.keys > 0; ++c) {
      T* const row = keys.data() + c * padded;
      for (Index j = 0; j < padded; ++j) row[j] = rows.key[std::min(j, rows.keys - 1) * rows.key_stride + c];
    }
    return keys;
  }

  /// Sums over the keys of each row's range, tile by tile of keys: calls run<N>(row, keys, out) for N batches of keys that begin at `keys`.
  /// The sums s [rows, stride] start at key all.first.
  template <class Run>
  void by_tiles(std::vector<KeyRange> const& ranges, KeyRange all, T* s, Index stride, Run const& run) const {
    for (Index tile = all.first; tile < all.last; tile += tile_batches * step) {
      for (Index i = 0; i < std::ssize(ranges); ++i) {
        auto const [first, last] = at(ranges, i);
        Index const begin = std::max(first, tile), end = std::min(last, tile + tile_batches * step);
        if (begin >= end) continue;
        Index const from = tile + (begin - tile) / step * step, batches = (end - from + step - 1) / step;
        T const* const keys = numbers.data() + from;
        T* const out = s + i * stride + (from - all.first);
        batches == 1   ? run.template operator()<1>(i, keys, out)
        : batches == 2 ? run.template operator()<2>(i, keys, out)
        : batches == 3 ? run.template operator()<3>(i, keys, out)
                       : run.template operator()<tile_batches>(i, keys, out);
      }
    }
  }

  static constexpr Index step = lanes<T>;
  static constexpr int tile_batches = 4;  // of keys at once: several sums hide the latency of one, and a tile of keys stays in the L1 cache
  Index padded;
  std::vector<T> numbers;
};

/// HeadSum of a formula; holds nothing of size [n, m, d].
template <class T, class F>
class FormulaHead : public HeadSum<T> {
 public:
  FormulaHead(F const& f, PairRows<T> const& rows) : f_(f), rows_(rows), keys_(rows), padded_(keys_.padded) {}

  void sums(Index first, std::vector<KeyRange> const& ranges, KeyRange all, T* s, Index stride) const override {
    keys_.by_tiles(ranges, all, s, stride, [&]<int N>(Index i, T const* keys, T* out) {
      sum_batches<N>(rows_.query + (first + i) * rows_.query_stride, keys, out);
    });
  }

  void gradients(Index first, Index rows, KeyRange all, T const* ds, Index stride, T* dq, Index dq_stride, T* dw) override {
    if (dkey_.empty()) dkey_.assign(keys_.numbers.size(), T(0));
    Index i = 0;
    for (; i + 4 <= rows; i += 4) gradient_rows<4>(first + i, all, ds + i * stride, stride, dq + i * dq_stride, dq_stride, dw);
    for (; i < rows; ++i) gradient_rows<1>(first + i, all, ds + i * stride, stride, dq + i * dq_stride, dq_stride, dw);
  }

  void add_keys(T* dk, Index stride) const override {
    if (dkey_.empty()) return;
    for (Index j = 0; j < rows_.keys; ++j)
      for (Index c = 0; c < rows_.width; ++c) dk[j * stride + c] += at(dkey_, c * padded_ + j);
  }

  void along(PairRows<T> const& direction) override {
    direction_ = direction;
    key_along_ = keys_.of(direction);
    dkey_.assign(key_along_.size(), T(0));
  }
  void second(Index first, Index rows, T const* ds, T* sums_along, Index stride, T* dq, Index dq_stride, T* dw) override {
    for (Index i = 0; i < rows; ++i) std::fill_n(sums_along + i * stride, rows_.keys, T(0));
    Index i = 0;
    for (; i + 2 <= rows; i += 2)
      second_rows<2>(first + i, ds + i * stride, sums_along + i * stride, stride, dq + i * dq_stride, dq_stride, dw);
    if (i < rows) second_rows<1>(first + i, ds + i * stride, sums_along + i * stride, stride, dq + i * dq_stride, dq_stride, dw);
  }

 private:
  static constexpr Index step = lanes<T>;
  T weight(Index c) const { return rows_.weight != nullptr ? rows_.weight[c] : T(0); }

  template <int N>
  [[gnu::flatten]] void sum_batches(T const* q, T const* k, T* out) const {
    Lanes<T> total[N];
    for (int n = 0; n < N; ++n) total[n] = Lanes<T>(T(0));
    for (Index c = 0; c < rows_.width; ++c, k += padded_) {
      Lanes<T> const qc(q[c]), wc(weight(c));
      for (int n = 0; n < N; ++n) total[n] += at_pair(f_, qc, Lanes<T>::load_unaligned(k + n * step), wc).value;
    }
    for (int n = 0; n < N; ++n) total[n].store_unaligned(out + n * step);
  }

  /// Several queries share each load of a key and of its gradient.
  template <int N>
  [[gnu::flatten]] void gradient_rows(Index first, KeyRange all, T const* ds, Index stride, T* dq, Index dq_stride, T* dw) {
    Index const seen = all.last - all.first;
    for (Index c = 0; c < rows_.width; ++c) {
      Lanes<T> q[N], of_query[N], of_weight(T(0));
      Lanes<T> const wc(weight(c));
      for (int n = 0; n < N; ++n) q[n] = Lanes<T>(rows_.query[(first + n) * rows_.query_stride + c]), of_query[n] = Lanes<T>(T(0));
      T const* const k = keys_.numbers.data() + c * padded_ + all.first;
      T* const dkc = dkey_.data() + c * padded_ + all.first;
      auto const add = [&](Index j, auto const& load) {
        Lanes<T> const kj = Lanes<T>::load_unaligned(k + j);
        KernelSums<Lanes<T>, 3> sums{{Lanes<T>(T(0)), Lanes<T>::load_unaligned(dkc + j), of_weight}};
        for (int n = 0; n < N; ++n) {
          sums.sum[0] = of_query[n];
          at_pair(f_, q[n], kj, wc).back(load(ds + n * stride + j), sums);
          of_query[n] = sums.sum[0];
        }
        sums.sum[1].store_unaligned(dkc + j);
        of_weight = sums.sum[2];
      };
      Index j = 0;
      for (; j + step <= seen; j += step) add(j, [](T const* x) { return Lanes<T>::load_unaligned(x); });
      if (j < seen) add(j, [&](T const* x) { return load_some<T>(x, seen - j, T(0)); });
      for (int n = 0; n < N; ++n) dq[n * dq_stride + c] = kernels::lane_sum(of_query[n]);
      if (dw != nullptr) dw[c] += kernels::lane_sum(of_weight);
    }
  }

  /// As gradient_rows(), over dual numbers.
  template <int N>
  [[gnu::flatten]] void second_rows(Index first, T const* ds, T* sums_along, Index stride, T* dq, Index dq_stride, T* dw) {
    using V = Lanes<T>;
    using D = reverse::Dual<V>;
    V const zero(T(0));
    for (Index c = 0; c < rows_.width; ++c) {
      D q[N], of_query[N], of_weight{zero, zero};
      D const wc{V(weight(c)), V(direction_.weight != nullptr ? direction_.weight[c] : T(0))};
      for (int n = 0; n < N; ++n) {
        q[n] = {V(rows_.query[(first + n) * rows_.query_stride + c]), V(direction_.query[(first + n) * direction_.query_stride + c])};
        of_query[n] = {zero, zero};
      }
      T const* const k = keys_.numbers.data() + c * padded_;
      T const* const ka = key_along_.data() + c * padded_;
      T* const dkc = dkey_.data() + c * padded_;
      each_batch<T>(rows_.keys, [&](Index j, auto const& batch) {
        D const kj{V::load_unaligned(k + j), V::load_unaligned(ka + j)};
        KernelSums<D, 3> sums{{{zero, zero}, {zero, V::load_unaligned(dkc + j)}, of_weight}};
        for (int n = 0; n < N; ++n) {
          sums.sum[0] = of_query[n];
          auto const pair = at_pair(f_, q[n], kj, wc);
          pair.back({batch.load(ds + n * stride + j), zero}, sums);
          of_query[n] = sums.sum[0];
          batch.store(batch.load(sums_along + n * stride + j) + pair.value.along, sums_along + n * stride + j);
        }
        sums.sum[1].along.store_unaligned(dkc + j);
        of_weight = sums.sum[2];
      });
      for (int n = 0; n < N; ++n) dq[n * dq_stride + c] = kernels::lane_sum(of_query[n].along);
      if (dw != nullptr) dw[c] += kernels::lane_sum(of_weight.along);
    }
  }

  F f_;
  PairRows<T> rows_, direction_{};
  TransposedKeys<T> keys_;
  Index padded_;
  std::vector<T> key_along_, dkey_;  // [d, padded]
};

/// What a finish receives besides the sum.
template <class V>
struct FinishVariables {
  reverse::Constant<V> distance;
  reverse::Variable<V, 1> query;
  reverse::Variable<V, 2> key;
  reverse::Variable<V, 3> parameter;
  reverse::Variable<V, 4> second_parameter;
  double root_width;
};

/// Calls use(expression of the j-th batch, batch) for every batch of a row, reading `sums`.
template <class T, class G, class Use>
[[gnu::flatten]] void each_finish(G const& g, FinishRow<T> const& row, T const* sums, Use const& use) {
  using V = Lanes<T>;
  T const none = 0;
  T const* const p = row.parameter;
  V const first(p != nullptr ? p[0] : none), second(row.parameters > 1 ? p[1] : none);
  alignas(64) T ramp[static_cast<std::size_t>(lanes<T>)];
  for (Index j = 0; j < lanes<T>; ++j) ramp[j] = static_cast<T>(j);
  V const steps = V::load_aligned(ramp);
  each_batch<T>(row.count, [&](Index j, auto const& batch) {
    V const distance = V(static_cast<T>(row.distance - static_cast<double>(j))) - steps;
    V const key = row.keys != nullptr ? batch.load(row.keys + j) : V(none);
    FinishVariables<V> const at{{distance}, {V(row.query)}, {key}, {first}, {second}, row.root_width};
    use(j, g(reverse::Variable<V, 0>{batch.load(sums + j)}, at), batch);
  });
}

}  // namespace kernels

namespace detail {

template <class F>
struct FormulaSum : PairSum {
  explicit FormulaSum(F formula) : f(std::move(formula)) {}
  std::unique_ptr<kernels::HeadSum<float>> of_head(kernels::PairRows<float> const& rows) const override {
    return std::make_unique<kernels::FormulaHead<float, F>>(f, rows);
  }
  std::unique_ptr<kernels::HeadSum<double>> of_head(kernels::PairRows<double> const& rows) const override {
    return std::make_unique<kernels::FormulaHead<double, F>>(f, rows);
  }
  Tensor composed(Tensor const& query, Tensor const& key, Tensor const& weight) const override {
    Tensor const q = unsqueeze(query, 3), k = unsqueeze(key, 2);  // [B, H, n, m, d]
    if constexpr (std::invocable<F const&, Tensor, Tensor, Tensor>)
      return sum(f(q, k, reshape(weight, {weight.size(0), 1, 1, weight.size(1)})), {-1});
    else
      return sum(f(q, k), {-1});
  }

  F f;
};

template <class G>
struct FormulaFinish : PairFinish {
  explicit FormulaFinish(G formula) : g(std::move(formula)) {}
  void scores(kernels::FinishRow<float> const& row) const override { scores_of(row); }
  void scores(kernels::FinishRow<double> const& row) const override { scores_of(row); }
  void gradients(kernels::FinishRow<float> const& row) const override { gradients_of(row); }
  void gradients(kernels::FinishRow<double> const& row) const override { gradients_of(row); }
  Tensor composed(Tensor const& sums, FinishInputs const& inputs) const override { return g(sums, inputs); }

  template <class T>
  void scores_of(kernels::FinishRow<T> const& row) const {
    kernels::each_finish<T>(g, row, row.scores, [&](Index j, auto const& e, auto const& batch) { batch.store(e.value, row.scores + j); });
  }
  template <class T>
  void gradients_of(kernels::FinishRow<T> const& row) const {
    using V = kernels::Lanes<T>;
    V const zero(T(0));
    V query = zero, first = zero, second = zero;
    kernels::each_finish<T>(g, row, row.sums, [&](Index j, auto const& e, auto const& batch) {
      // Lanes beyond the row may hold any value, even NaN: they are selected away, not multiplied by 0.
      kernels::KernelSums<V, 5> sums{{zero, zero, zero, zero, zero}};
      e.back(batch.load(row.scores + j), sums);
      Index const rest = std::min(row.count - j, kernels::lanes<T>);
      auto const kept = [&](V const& v) { return rest == kernels::lanes<T> ? v : kernels::keep_some<T>(v, rest); };
      batch.store(sums.sum[0], row.scores + j);
      query += kept(sums.sum[1]);
      if (row.dkeys != nullptr) batch.store(batch.load(row.dkeys + j) + sums.sum[2], row.dkeys + j);
      first += kept(sums.sum[3]);
      second += kept(sums.sum[4]);
    });
    if (row.dquery != nullptr) *row.dquery += kernels::lane_sum(query);
    if (row.dparameter != nullptr) row.dparameter[0] += kernels::lane_sum(first);
    if (row.dparameter != nullptr && row.parameters > 1) row.dparameter[1] += kernels::lane_sum(second);
  }

  G g;
};

}  // namespace detail

template <class F>
std::shared_ptr<PairSum const> pair_sum(F f) {
  return std::make_shared<detail::FormulaSum<F>>(std::move(f));
}
template <class G>
std::shared_ptr<PairFinish const> pair_finish(G g) {
  return std::make_shared<detail::FormulaFinish<G>>(std::move(g));
}

}  // namespace heed
