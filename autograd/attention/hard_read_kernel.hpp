#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "autograd/attention/head_kernel.hpp"
#include "autograd/kernels/rows.hpp"

namespace heed::kernels {

/// J of one row by inversion, with u uniform in [0, 1). Sums in float64, so that float32 and float64 choose alike.
template <class T>
Index drawn(T const* weights, Index count, double u) {
  double total = 0;
  for (Index j = 0; j < count; ++j) total += static_cast<double>(weights[j]);
  double const threshold = u * total;
  Index last = 0;
  double sum = 0;
  for (Index j = 0; j < count && sum <= threshold; ++j) {
    sum += static_cast<double>(weights[j]);
    if (weights[j] > 0) last = j;
  }
  return last;
}

/// z_j = (log w_j + g_j)/τ for `count` keys from `first` on, g_j = −log(−log u_j), u_j draw j of the query's stream; −∞ where w_j = 0.
template <class T>
void gumbel_logits(T const* weights, Stream const& of_query, Index first, Index count, double temperature, T* z) {
  using V = Lanes<double>;
  alignas(64) std::array<std::uint64_t, 64> bits;
  alignas(64) std::array<double, 64> u, w;
  V const tau(temperature), none(-std::numeric_limits<double>::infinity()), zero(0.0), one(1.0);
  for (Index begin = 0; begin < count; begin += 64) {
    auto const n = static_cast<std::size_t>(std::min<Index>(64, count - begin));
    of_query.bits(static_cast<std::uint64_t>(first + begin), {bits.data(), n});
    u.fill(0.5), w.fill(0);
    for (std::size_t k = 0; k < n; ++k) {
      u[k] = inside_of_unit(static_cast<double>(bits[k] >> 11) * 0x1p-53);
      w[k] = static_cast<double>(weights[begin + static_cast<Index>(k)]);
    }
    for (std::size_t k = 0; k < n; k += V::size) {
      V const g = -xsimd::log(-xsimd::log(V::load_aligned(&u[k])));
      V const a = V::load_aligned(&w[k]);
      V const logit = (xsimd::log(xsimd::select(a > zero, a, one)) + g) / tau;
      xsimd::select(a > zero, logit, none).store_aligned(&u[k]);
    }
    for (std::size_t k = 0; k < n; ++k) z[begin + static_cast<Index>(k)] = static_cast<T>(u[k]);
  }
}

/// Hard reads of one head's rows.
template <class T>
class HardRows {
 public:
  explicit HardRows(Head<T>& head)
      : head_(head),
        c_(head.c_),
        hard_(*head.c_.form.hard),
        soft_(hard_.choice == HardRead::ChosenBy::gumbel ? static_cast<std::size_t>(head.row_stride_) : 0) {}

  /// Row i after align(): sets J, writes the context to `result` and, if scored, w_J behind all heads' contexts, the entropy H numbers on.
  void forward(Index i, T* result, Index* chosen) {
    Index const query = head_.at(head_.first_ + i), count = head_.range_of(i).last - head_.range_of(i).first;
    T const* const w = head_.weighed(i, weighed_);
    T const sum = total_row(w, count);
    Index const key = hard_.chosen.defined() ? hard_.chosen.template data<std::int64_t>()[row_of(query)]
                      : sum > 0              ? head_.range_of(i).first + choose(i, w, count)
                                             : 0;
    chosen[row_of(query)] = key;
    T const factor = sum > 0 ? dropped(i, key) : sum;  // NaN stays NaN
    T const* const value = head_.in_.value + key * head_.value_stride_;
    for (Index c = 0; c < c_.value_width; ++c) result[c] = sum == 0 ? T(0) : factor * value[c];
    if (!hard_.scored) return;
    Index const inside = key - head_.range_of(i).first;
    T const probability = inside >= 0 && inside < count ? w[inside] : T(0);
    result[score_offset()] = sum == 0 && key == 0 ? T(1) : probability;
    Lanes<T> const zero(T(0)), one(T(1));
    result[score_offset() + c_.form.heads] = -sum_row<T>(
        count, [&](auto const& x) { return x * xsimd::log(xsimd::select(x > zero, x, one)); }, w);
  }

  /// From the gradient of row i's result computes those of its weights, dw, and adds those of the values to `dvalues` [m, d_v] of this
  /// head. If as_if_soft, dw must hold the gradients of Σ_j w_ij v_j.
  void backward(Index i, T const* dresult, T* dw, T* dvalues) {
    KeyRange const s = head_.range_of(i);
    Index const query = head_.at(head_.first_ + i), count = s.last - s.first;
    Index const key = hard_.chosen.template data<std::int64_t>()[row_of(query)];
    T const* const w = head_.weighed(i, weighed_);
    bool const reads = total_row(w, count) > 0;
    if (reads && hard_.as_if_soft())
      soften(i, w, dw);
    else
      std::fill_n(dw, count, T(0));
    if (!reads) return;
    T const factor = dropped(i, key);
    for (Index c = 0; c < c_.value_width; ++c) dvalues[key * head_.value_stride_ + c] += factor * dresult[c];
    if (!hard_.scored) return;
    if (key >= s.first && key < s.last) dw[key - s.first] += dresult[score_offset()];
    Lanes<T> const zero(T(0)), one(T(1)), dentropy(dresult[score_offset() + c_.form.heads]);
    transform_row<T>(
        dw, count,
        [&](auto const& d, auto const& x) {
          return xsimd::select(x > zero, d - dentropy * (xsimd::log(xsimd::select(x > zero, x, one)) + one), d);
        },
        dw, w);
  }

 private:
  std::size_t row_of(Index query) const { return static_cast<std::size_t>((head_.b_ * c_.form.heads + head_.h_) * c_.queries + query); }
  /// Offset of w_J from this head's context.
  Index score_offset() const { return (c_.form.heads - head_.h_) * c_.value_width + head_.h_; }

  /// Dropout's factor on this key.
  T dropped(Index i, Index key) const {
    T factor(1);
    head_.drop(i, key, &factor, 1);
    return factor;
  }

  Stream const& stream() const { return at(hard_.streams, head_.b_ * c_.form.heads + head_.h_); }
  std::uint64_t position(Index i) const {
    return static_cast<std::uint64_t>(c_.form.visibility.first_key + c_.form.visibility.offset + head_.at(head_.first_ + i));
  }
  /// z of row i.
  void logits(Index i, T const* w, Index count, T* z) const {
    Index const first = c_.form.visibility.first_key + head_.range_of(i).first;
    gumbel_logits(w, stream().child(position(i)), first, count, hard_.temperature, z);
  }

  Index choose(Index i, T const* w, Index count) {
    if (hard_.choice == HardRead::ChosenBy::largest) return std::max_element(w, w + count) - w;
    if (hard_.choice != HardRead::ChosenBy::gumbel) return drawn(w, count, stream().uniform(position(i)));
    logits(i, w, count, soft_.data());
    return std::max_element(soft_.begin(), soft_.begin() + count) - soft_.begin();
  }

  /// dw of Σ_j w_ij v_j: applies dropout's factors and, for Gumbel noise, the gradient through y_i.
  void soften(Index i, T const* w, T* dw) {
    KeyRange const s = head_.range_of(i);
    Index const count = s.last - s.first;
    head_.drop(i, s.first, dw, count);
    if (hard_.choice != HardRead::ChosenBy::gumbel) return;
    T* const y = soft_.data();
    logits(i, w, count, y);
    softmax_row(y, y, count);
    softmax_row_backward<T>(y, dw, dw, count);
    Lanes<T> const zero(T(0)), one(T(1)), tau(static_cast<T>(hard_.temperature));
    transform_row<T>(
        dw, count, [&](auto const& d, auto const& x) { return xsimd::select(x > zero, d / (tau * xsimd::select(x > zero, x, one)), zero); },
        dw, w);
  }

  Head<T>& head_;
  AttentionCall const& c_;
  HardRead const& hard_;
  std::vector<T> weighed_, soft_;  // one row: weights times the Gaussian; y
};

}  // namespace heed::kernels
