#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/kernels/rows.hpp"

/// The additive score vᵀ tanh(q + k) of one head, tiled: nothing of size [n, m, d] exists.
///
/// tanh(a + b) = 1 − 2r with r = 1/(1 + e^{2a}·e^{2b}): the exponentials are computed once per query and key, and the inner loop is a
/// multiplication, an addition, a reciprocal and a multiply-add. Where one of them would not be a normal number (|2a| beyond `limit`) the
/// head takes r = (1 − tanh(a + b))/2 instead. The product may overflow or vanish: r is then 0 or 1, as it should be.
namespace heed::kernels {

template <class T>
inline constexpr T additive_limit = sizeof(T) == 4 ? T(80) : T(700);

/// 1/x for 1 ≤ x ≤ ∞, to full precision.
template <class T>
Lanes<T> reciprocal_above_one(Lanes<T> const& x) {
  if constexpr (sizeof(T) == 4) {
    Lanes<T> const bounded = xsimd::min(x, Lanes<T>(T(1e30)));  // so that the correction below is not ∞ · 0
    Lanes<T> const estimate = xsimd::reciprocal(bounded);
    Lanes<T> const better = estimate * (Lanes<T>(T(2)) - bounded * estimate);
    return better * (Lanes<T>(T(2)) - bounded * better);
  } else {
    return Lanes<T>(T(1)) / x;
  }
}

/// The queries and keys of one head, prepared: q [n, d] as it is or e^{2q}; k transposed [d, padded m] likewise.
template <class T>
class AdditiveHead {
 public:
  AdditiveHead(T const* q, T const* k, std::int64_t stride, std::int64_t queries, std::int64_t keys, std::int64_t width)
      : width_(width), padded_((keys + lanes<T> - 1) / lanes<T> * lanes<T>), query_(size(queries * width)), key_(size(width * padded_)) {
    T largest = 0;
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t c = 0; c < width; ++c) largest = std::max(largest, std::abs(query_[size(i * width + c)] = q[i * stride + c]));
    }
    for (std::int64_t j = 0; j < keys; ++j) {
      for (std::int64_t c = 0; c < width; ++c) largest = std::max(largest, std::abs(key_[size(c * padded_ + j)] = k[j * stride + c]));
    }
    factored_ = 2 * largest <= additive_limit<T>;
    if (!factored_) return;
    auto const twice_exp = [](auto v) { return xsimd::exp(v + v); };
    transform_row<T>(query_.data(), queries * width, twice_exp, static_cast<T const*>(query_.data()));
    transform_row<T>(key_.data(), width * padded_, twice_exp, static_cast<T const*>(key_.data()));
  }

  /// scores[j − first] = Σ_c v_c tanh(q_ic + k_jc) for j in [first, last). The row has room for a multiple of the lanes.
  void score(std::int64_t i, T const* v, std::int64_t first, std::int64_t last, T* scores) const {
    factored_ ? score_by(Factored{}, i, v, first, last, scores) : score_by(Direct{}, i, v, first, last, scores);
  }

  /// From de[j − first] (zeros up to a multiple of the lanes): dq_c += v_c Σ_j de 4r(1 − r), dk [d, padded] likewise, dv_c += Σ_j de tanh.
  void gradient(std::int64_t i, T const* v, std::int64_t first, std::int64_t last, T const* de, T* dq, T* dk, T* dv) const {
    factored_ ? gradient_by(Factored{}, i, v, first, last, de, dq, dk, dv) : gradient_by(Direct{}, i, v, first, last, de, dq, dk, dv);
  }

  std::int64_t padded() const { return padded_; }

 private:
  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
  struct Factored {
    Lanes<T> operator()(Lanes<T> const& q, Lanes<T> const& k) const { return reciprocal_above_one<T>(Lanes<T>(T(1)) + q * k); }
  };
  struct Direct {
    Lanes<T> operator()(Lanes<T> const& q, Lanes<T> const& k) const { return (Lanes<T>(T(1)) - xsimd::tanh(q + k)) * Lanes<T>(T(0.5)); }
  };

  /// Whole batches of keys: the last one may reach into the padding or before `first`'s batch ends, where the result is not used.
  template <class R>
  void score_by(R const& r, std::int64_t i, T const* v, std::int64_t first, std::int64_t last, T* scores) const {
    T const* const q = query_.data() + i * width_;
    T total = 0;
    for (std::int64_t c = 0; c < width_; ++c) total += v[c];
    constexpr std::int64_t step = lanes<T>;
    std::int64_t j = first;
    for (; j + 4 * step <= last; j += 4 * step) {  // four batches at once hide the reciprocal's latency
      Lanes<T> s0(T(0)), s1(T(0)), s2(T(0)), s3(T(0));
      for (std::int64_t c = 0; c < width_; ++c) {
        T const* const k = key_.data() + c * padded_ + j;
        Lanes<T> const qc(q[c]), vc(v[c]);
        s0 += vc * r(qc, Lanes<T>::load_unaligned(k));
        s1 += vc * r(qc, Lanes<T>::load_unaligned(k + step));
        s2 += vc * r(qc, Lanes<T>::load_unaligned(k + 2 * step));
        s3 += vc * r(qc, Lanes<T>::load_unaligned(k + 3 * step));
      }
      Lanes<T> const all(total), two(T(2));
      (all - two * s0).store_unaligned(scores + (j - first));
      (all - two * s1).store_unaligned(scores + (j - first) + step);
      (all - two * s2).store_unaligned(scores + (j - first) + 2 * step);
      (all - two * s3).store_unaligned(scores + (j - first) + 3 * step);
    }
    for (; j < last; j += step) {
      std::int64_t const count = std::min(step, last - j);
      Lanes<T> s(T(0));
      for (std::int64_t c = 0; c < width_; ++c) s += Lanes<T>(v[c]) * r(Lanes<T>(q[c]), keys_at(c, j, count));
      (Lanes<T>(total) - Lanes<T>(T(2)) * s).store_unaligned(scores + (j - first));
    }
  }

  template <class R>
  void gradient_by(R const& r, std::int64_t i, T const* v, std::int64_t first, std::int64_t last, T const* de, T* dq, T* dk, T* dv) const {
    T const* const q = query_.data() + i * width_;
    T const total = sum_row<T>(
        last - first, [](auto x) { return x; }, de);
    for (std::int64_t c = 0; c < width_; ++c) {
      Lanes<T> const qc(q[c]), vc(T(4) * v[c]), one(T(1));
      Lanes<T> slopes(T(0)), weighted(T(0));
      T* const dkc = dk + c * padded_;
      std::int64_t j = first;
      for (; j + lanes<T> <= last; j += lanes<T>) {
        Lanes<T> const d = Lanes<T>::load_unaligned(de + (j - first));
        Lanes<T> const rj = r(qc, Lanes<T>::load_unaligned(key_.data() + c * padded_ + j));
        Lanes<T> const dr = d * rj;
        Lanes<T> const slope = vc * (dr * (one - rj));
        slopes += slope;
        weighted += dr;
        (Lanes<T>::load_unaligned(dkc + j) + slope).store_unaligned(dkc + j);
      }
      if (j < last) {
        std::int64_t const count = last - j;
        Lanes<T> const d = load_some<T>(de + (j - first), count, T(0));
        Lanes<T> const rj = r(qc, keys_at(c, j, count));
        Lanes<T> const dr = d * rj;
        Lanes<T> const slope = vc * (dr * (one - rj));
        slopes += slope;
        weighted += dr;
        store_some<T>(load_some<T>(dkc + j, count, T(0)) + slope, dkc + j, count);
      }
      dq[c] += xsimd::hadd(slopes);
      dv[c] += total - 2 * xsimd::hadd(weighted);
    }
  }

  Lanes<T> keys_at(std::int64_t c, std::int64_t j, std::int64_t count) const {
    return load_some<T>(key_.data() + c * padded_ + j, count, T(0));
  }

  std::int64_t width_, padded_;
  std::vector<T> query_, key_;
  bool factored_ = false;
};

}  // namespace heed::kernels
