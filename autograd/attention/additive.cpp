// The additive score vᵀ tanh(q + k) of one head, tiled; holds nothing of size [n, m, d].
//
// tanh(a + b) = 1 − 2r with r = 1/(1 + e^{2a}·e^{2b}): the exponentials are computed once per query and key, and the inner loop is a
// multiply-add, a reciprocal and a multiply-add. Where the product of the two exponentials could overflow or underflow (|2a| beyond
// additive_limit), the head takes r = (1 − tanh(a + b))/2 instead.

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "autograd/attention/fused_attention.hpp"
#include "autograd/attention/pair_formula.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/ops/product.hpp"

namespace heed::kernels {

template <class T>
inline constexpr T additive_limit = sizeof(T) == 4 ? T(43) : T(350);

/// 1/x for 1 ≤ x ≤ e^{2 limit}, to the last bit or two: Newton's step doubles the 12 or 14 bits of the processor's estimate.
template <class T>
Lanes<T> reciprocal_above_one(Lanes<T> const& x) {
  if constexpr (sizeof(T) == 4) {
    Lanes<T> const estimate = reciprocal_estimate(x);
    return estimate * xsimd::fnma(x, estimate, Lanes<T>(T(2)));
  } else {
    return Lanes<T>(T(1)) / x;
  }
}

/// The queries and keys of one head, prepared: q [n, d] unchanged or as e^{2q}; k transposed [d, padded m] likewise.
template <class T>
class AdditiveHead : public HeadSum<T> {
 public:
  explicit AdditiveHead(PairRows<T> const& rows)
      : vector_(rows.weight),
        count_(rows.keys),
        width_(rows.width),
        keys_(rows),
        padded_(keys_.padded),
        query_(static_cast<std::size_t>(rows.queries * width_)) {
    for (Index i = 0; i < rows.queries; ++i) std::copy_n(rows.query + i * rows.query_stride, width_, query_.data() + i * width_);
    T largest = 0;
    for (auto const* const all : {&query_, &keys_.numbers})
      for (T const x : *all) largest = std::max(largest, std::abs(x));
    factored_ = 2 * largest <= additive_limit<T>;
    if (!factored_) return;
    auto const twice_exp = [](auto v) { return exponential(v + v); };
    transform_row<T>(query_.data(), rows.queries * width_, twice_exp, query_.data());
    T* const keys = keys_.numbers.data();
    transform_row<T>(keys, width_ * padded_, twice_exp, keys);
  }

  void sums(Index first, std::vector<KeyRange> const& ranges, KeyRange all, T* e, Index stride) const override {
    T total = 0;
    for (Index c = 0; c < width_; ++c) total += vector_[c];
    auto const by = [&](auto const& r) {
      keys_.by_tiles(ranges, all, e, stride, [&]<int N>(Index i, T const* keys, T* out) {
        score_batches<N>(r, query_.data() + (first + i) * width_, keys, vector_, total, out);
      });
    };
    factored_ ? by(Factored{}) : by(Direct{});
  }

  void gradients(Index first, Index rows, KeyRange all, T const* de, Index stride, T* dq, Index dq_stride, T* dv) override {
    if (dkey_.empty()) dkey_.assign(keys_.numbers.size(), T(0));
    auto const by = [&](auto const& r) {
      Index i = 0;
      for (; i + 4 <= rows; i += 4) gradient_rows<4>(r, first + i, all, de + i * stride, stride, dq + i * dq_stride, dq_stride, dv);
      for (; i < rows; ++i) gradient_rows<1>(r, first + i, all, de + i * stride, stride, dq + i * dq_stride, dq_stride, dv);
    };
    factored_ ? by(Factored{}) : by(Direct{});
  }

  void add_keys(T* dk, Index stride) const override {
    for (Index j = 0; j < count_ && !dkey_.empty(); ++j)
      for (Index c = 0; c < width_; ++c) dk[j * stride + c] += (key_along_.empty() ? 4 * vector_[c] : 4) * at(dkey_, c * padded_ + j);
  }

  void along(PairRows<T> const& direction) override {
    direction_ = direction;
    key_along_ = keys_.of(direction);
    dkey_.assign(key_along_.size(), T(0));
  }
  void second(Index first, Index rows, T const* ds, T* sums_along, Index stride, T* dq, Index dq_stride, T* dw) override {
    for (Index i = 0; i < rows; ++i) std::fill_n(sums_along + i * stride, count_, T(0));
    auto const by = [&](auto const& r) {
      Index i = 0;
      for (; i + 4 <= rows; i += 4)
        second_rows<4>(r, first + i, ds + i * stride, sums_along + i * stride, stride, dq + i * dq_stride, dq_stride, dw);
      for (; i < rows; ++i)
        second_rows<1>(r, first + i, ds + i * stride, sums_along + i * stride, stride, dq + i * dq_stride, dq_stride, dw);
    };
    factored_ ? by(Factored{}) : by(Direct{});
  }

 private:
  static constexpr Index step = lanes<T>;
  struct Factored {
    Lanes<T> operator()(Lanes<T> const& q, Lanes<T> const& k) const { return reciprocal_above_one<T>(xsimd::fma(q, k, Lanes<T>(T(1)))); }
  };
  struct Direct {
    Lanes<T> operator()(Lanes<T> const& q, Lanes<T> const& k) const { return (Lanes<T>(T(1)) - xsimd::tanh(q + k)) * Lanes<T>(T(0.5)); }
  };

  template <int N, class R>
  void score_batches(R const& r, T const* q, T const* k, T const* v, T total, T* out) const {
    Lanes<T> sums[N];
    for (int n = 0; n < N; ++n) sums[n] = Lanes<T>(T(0));
    for (Index c = 0; c < width_; ++c, k += padded_) {
      Lanes<T> const qc(q[c]), vc(v[c]);
      for (int n = 0; n < N; ++n) sums[n] = xsimd::fma(vc, r(qc, Lanes<T>::load_unaligned(k + n * step)), sums[n]);
    }
    for (int n = 0; n < N; ++n) xsimd::fnma(Lanes<T>(T(2)), sums[n], Lanes<T>(total)).store_unaligned(out + n * step);
  }

  /// Several queries share each load of a key and of its gradient.
  template <int N, class R>
  void gradient_rows(R const& r, Index first, KeyRange all, T const* de, Index stride, T* dq, Index dq_stride, T* dv) {
    Index const seen = all.last - all.first;
    T total = 0;
    for (int n = 0; n < N; ++n) total += total_row(de + n * stride, seen);
    for (Index c = 0; c < width_; ++c) {
      Lanes<T> q[N], slopes[N], weighted(T(0));
      for (int n = 0; n < N; ++n) q[n] = Lanes<T>(at(query_, (first + n) * width_ + c)), slopes[n] = Lanes<T>(T(0));
      T const* const k = keys_.numbers.data() + c * padded_ + all.first;
      T* const dkc = dkey_.data() + c * padded_ + all.first;
      auto const add = [&](Index j, auto const& load) {
        Lanes<T> const kj = Lanes<T>::load_unaligned(k + j);
        Lanes<T> sum = Lanes<T>::load_unaligned(dkc + j);
        for (int n = 0; n < N; ++n) {
          Lanes<T> const rj = r(q[n], kj);
          Lanes<T> const dr = load(de + n * stride + j) * rj;
          Lanes<T> const slope = xsimd::fnma(dr, rj, dr);
          weighted += dr;
          slopes[n] += slope;
          sum += slope;
        }
        sum.store_unaligned(dkc + j);
      };
      Index j = 0;
      for (; j + step <= seen; j += step) add(j, [](T const* x) { return Lanes<T>::load_unaligned(x); });
      if (j < seen) add(j, [&](T const* x) { return load_some<T>(x, seen - j, T(0)); });
      for (int n = 0; n < N; ++n) dq[n * dq_stride + c] = 4 * vector_[c] * lane_sum(slopes[n]);
      dv[c] += total - 2 * lane_sum(weighted);
    }
  }

  /// With a' = q' + k', p = r(1 − r), t = 1 − 2r: s' sums 4 v p a' + t v', with the derivative 4p (v' − 2 v t a') by q and k, 4 p a' by v.
  template <int N, class R>
  void second_rows(R const& r, Index first, T const* ds, T* sums_along, Index stride, T* dq, Index dq_stride, T* dw) {
    using V = Lanes<T>;
    V const one(T(1)), two(T(2));
    for (Index c = 0; c < width_; ++c) {
      V q[N], q_along[N], slopes[N], of_weight(T(0));
      V const v(4 * vector_[c]), v_along(direction_.weight[c]), twice(2 * vector_[c]);
      for (int n = 0; n < N; ++n) {
        q[n] = V(at(query_, (first + n) * width_ + c)), slopes[n] = V(T(0));
        q_along[n] = V(direction_.query[(first + n) * direction_.query_stride + c]);
      }
      T const* const k = keys_.numbers.data() + c * padded_;
      T const* const ka = key_along_.data() + c * padded_;
      T* const dkc = dkey_.data() + c * padded_;
      each_batch<T>(count_, [&](Index j, auto const& batch) {
        V const kj = V::load_unaligned(k + j), k_along = V::load_unaligned(ka + j);
        V sum = V::load_unaligned(dkc + j);
        for (int n = 0; n < N; ++n) {
          V const rj = r(q[n], kj), p = xsimd::fnma(rj, rj, rj), t = xsimd::fnma(two, rj, one), a = q_along[n] + k_along;
          T* const s = sums_along + n * stride + j;
          batch.store(xsimd::fma(v * p, a, xsimd::fma(t, v_along, batch.load(s))), s);
          V const weighted = batch.load(ds + n * stride + j) * p;
          V const slope = weighted * xsimd::fnma(twice * t, a, v_along);
          slopes[n] += slope;
          sum += slope;
          of_weight = xsimd::fma(weighted, a, of_weight);
        }
        sum.store_unaligned(dkc + j);
      });
      for (int n = 0; n < N; ++n) dq[n * dq_stride + c] = 4 * lane_sum(slopes[n]);
      dw[c] += 4 * lane_sum(of_weight);
    }
  }

  T const* vector_;
  PairRows<T> direction_{};
  Index count_, width_;
  TransposedKeys<T> keys_;
  Index padded_;
  std::vector<T> query_, key_along_;
  std::vector<T> dkey_;  // sums not yet multiplied by 4 (in gradients() also by v_c)
  bool factored_ = false;
};

}  // namespace heed::kernels

namespace heed {

namespace {

struct AdditiveSum : PairSum {
  std::unique_ptr<kernels::HeadSum<float>> of_head(kernels::PairRows<float> const& rows) const override {
    return std::make_unique<kernels::AdditiveHead<float>>(rows);
  }
  std::unique_ptr<kernels::HeadSum<double>> of_head(kernels::PairRows<double> const& rows) const override {
    return std::make_unique<kernels::AdditiveHead<double>>(rows);
  }
  Tensor composed(Tensor const& query, Tensor const& key, Tensor const& weight) const override {
    Tensor const hidden = tanh(unsqueeze(query, 3) + unsqueeze(key, 2));  // [B, H, n, m, d]
    return squeeze(matmul(hidden, reshape(weight, {weight.size(0), 1, weight.size(1), 1})), -1);
  }
};

}  // namespace

std::shared_ptr<PairSum const> additive_sum() {
  static auto const instance = std::make_shared<AdditiveSum>();
  return instance;
}

}  // namespace heed
