#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "autograd/kernels/additive.hpp"
#include "autograd/kernels/attention.hpp"
#include "autograd/kernels/dropout.hpp"
#include "autograd/kernels/products/gemm.hpp"
#include "autograd/kernels/rows.hpp"

namespace heed::kernels {

inline constexpr std::int64_t block_rows = 64;  // queries whose scores are held at once

/// One head of one sequence: pointers, strides, and the work on a block of its queries. Where every query has a centre of its own, the
/// queries are taken in the order of their windows, so that those of a block overlap: row i is then query at(i).
template <class T>
class Head {
 public:
  Head(AttentionCall const& c, std::int64_t b, std::int64_t h)
      : c_(c),
        b_(b),
        h_(h),
        stride_(c.form.heads * c.width),
        value_stride_(c.form.heads * c.value_width),
        q(c.query.data<T>().data() + b * c.queries * stride_ + h * c.width),
        k(c.key.data<T>().data() + b * c.keys * stride_ + h * c.width),
        v(c.value.data<T>().data() + b * c.keys * value_stride_ + h * c.value_width),
        relative_(c.relative.defined() ? c.relative.data<T>().data() + h * c.relative.size(1) : nullptr),
        centres_(c.centres.defined() ? c.centres.data<T>().data() + (b * c.form.heads + h) * c.queries : nullptr),
        order_(order_of_windows()),
        packed_(order_.empty() ? Tensor() : packed(q, stride_, c.width)),
        query_stride_(order_.empty() ? stride_ : c.width),
        row_stride_((c.keys + lanes<T> - 1) / lanes<T> * lanes<T> + lanes<T>),
        weights_({std::min(block_rows, c.queries), row_stride_}, c.query.dtype()) {
    if (!order_.empty()) q = packed_.template data<T>().data();
    if (c.form.score == AttentionForm::Score::additive) additive_.emplace(q, query_stride_, k, stride_, c.queries, c.keys, c.width);
    if (c.form.score == AttentionForm::Score::cosine) {
      query_lengths_ = lengths_of(q, query_stride_, c.queries);
      key_lengths_ = lengths_of(k, stride_, c.keys);
    }
  }

  bool ordered() const { return !order_.empty(); }
  std::int64_t at(std::int64_t row) const { return order_.empty() ? row : order_[static_cast<std::size_t>(row)]; }
  /// The rows x [n, width] in the order of this head's work.
  Tensor packed(T const* x, std::int64_t stride, std::int64_t width) const {
    Tensor rows({c_.queries, width}, c_.query.dtype());
    T* const out = rows.template mutable_data<T>().data();
    for (std::int64_t i = 0; i < c_.queries; ++i) std::copy_n(x + at(i) * stride, width, out + i * width);
    return rows;
  }
  void unpack(T const* rows, std::int64_t width, T* x, std::int64_t stride) const {
    for (std::int64_t i = 0; i < c_.queries; ++i) std::copy_n(rows + i * width, width, x + at(i) * stride);
  }

  /// The keys that query i attends to.
  KeyRange range(std::int64_t i) const {
    std::int64_t const visible = c_.form.visibility.count(b_, i, c_.keys);
    if (c_.form.window <= 0) return {0, visible};
    double const centre = centres_ != nullptr ? static_cast<double>(centres_[i]) : static_cast<double>(c_.form.visibility.offset + i);
    return window_around(centre, c_.form.window, visible);
  }
  /// Begins with the rows first … first + rows − 1; all_ is then the union of their ranges, and an empty range begins where it does.
  void begin_block(std::int64_t first, std::int64_t rows) {
    first_ = first;
    rows_ = rows;
    ranges_.clear();
    all_ = {c_.keys, 0};
    for (std::int64_t i = 0; i < rows; ++i) {
      KeyRange const s = range(at(first + i));
      ranges_.push_back(s);
      if (s.first < s.last) all_ = {std::min(all_.first, s.first), std::max(all_.last, s.last)};
    }
    if (all_.first >= all_.last) all_ = {0, 0};
    for (KeyRange& s : ranges_) {
      if (s.first >= s.last) s = {all_.first, all_.first};
    }
  }

  /// weights_ [rows, all]: softmax over each row's range, 0 outside. Sets the rows' log-sum-exps, or uses them if they are `known`.
  void softmax(T* log_sum_exp, bool known) {
    std::int64_t const seen = all_.last - all_.first;
    T* const w = weights();
    if (additive_) {
      additive_->scores(first_, ranges_, all_, parameter(), w, row_stride_);
    } else if (seen > 0) {
      gemm<T>(rows_, seen, c_.width, product_scale(), {q + first_ * query_stride_, query_stride_},
              {k + all_.first * stride_, stride_, true}, 0, w, row_stride_);
    }
    std::array<T, block_rows> totals;
    for (std::int64_t i = 0; i < rows_; ++i) {
      KeyRange const s = ranges_[static_cast<std::size_t>(i)];
      T* const row = w + i * row_stride_;
      std::int64_t const count = s.last - s.first;
      T* const inside = row + (s.first - all_.first);
      finish_scores(first_ + i, s, inside);
      if (count == 0) {
        log_sum_exp[i] = 0;
        totals[static_cast<std::size_t>(i)] = 1;
      } else if (known) {
        exp_row(inside, log_sum_exp[i], inside, count);
      } else {
        auto const sum = softmax_row(inside, inside, count);
        log_sum_exp[i] = sum.m;
        totals[static_cast<std::size_t>(i)] = sum.total;
      }
      std::fill(row, inside, T(0));
      std::fill(inside + count, row + std::max<std::int64_t>(seen, 0), T(0));
    }
    if (known) return;
    transform_row<T>(
        log_sum_exp, rows_, [](auto const& m, auto const& total) { return m + xsimd::log(total); }, static_cast<T const*>(log_sum_exp),
        totals.data());
  }

  /// Whether the values' weights are more than a softmax: times factors().
  bool has_factors() const { return c_.form.gaussian || c_.form.dropout; }
  /// What row i's softmax is multiplied by, for its range: exp(−(j − p)²/(2σ²)) if the call has a Gaussian, and 0 or 1/(1 − rate) if it
  /// has dropout.
  void factors(std::int64_t i, T* out) const {
    KeyRange const s = ranges_[static_cast<std::size_t>(i)];
    std::int64_t const query = at(first_ + i), count = s.last - s.first;
    if (c_.form.gaussian) {
      T const centre = centres_[query], deviation = static_cast<T>(c_.form.deviation);
      for (std::int64_t j = s.first; j < s.last; ++j) {
        T const z = (static_cast<T>(j) - centre) / deviation;
        out[j - s.first] = std::exp(-z * z / 2);
      }
    } else {
      std::fill_n(out, count, T(1));
    }
    if (!c_.form.dropout) return;
    std::int64_t const element = ((b_ * c_.form.heads + h_) * c_.queries + query) * c_.keys + s.first;  // of [B, H, n, m]
    dropout_row(c_.form.dropout->rate, c_.form.dropout->stream, static_cast<std::uint64_t>(element), out, out, count);
  }

  /// What a product q·k is multiplied by: the settings' scale is of the dot score alone.
  T product_scale() const { return c_.form.score == AttentionForm::Score::dot ? static_cast<T>(c_.form.scale) : T(1); }
  T* row(std::int64_t i) { return weights() + i * row_stride_ + (ranges_[static_cast<std::size_t>(i)].first - all_.first); }
  T* weights() { return weights_.template mutable_data<T>().data(); }
  T const* parameter() const { return c_.parameter.data<T>().data() + (additive_ ? h_ * c_.width : h_); }

  AttentionCall const& c_;
  std::int64_t b_, h_, stride_, value_stride_;
  T const *q, *k, *v;
  T const* relative_;
  T const* centres_;
  std::vector<std::int64_t> order_;
  Tensor packed_;
  std::int64_t query_stride_, row_stride_;
  Tensor weights_;
  std::optional<AdditiveHead<T>> additive_;
  std::vector<T> query_lengths_, key_lengths_;
  std::int64_t first_ = 0, rows_ = 0;
  std::vector<KeyRange> ranges_;
  KeyRange all_{0, 0};

 private:
  std::vector<T> lengths_of(T const* x, std::int64_t stride, std::int64_t count) const {
    std::vector<T> lengths;
    for (std::int64_t i = 0; i < count; ++i) lengths.push_back(std::sqrt(dot_row(x + i * stride, x + i * stride, c_.width)));
    return lengths;
  }
  /// Empty: as they are.
  std::vector<std::int64_t> order_of_windows() const {
    if (centres_ == nullptr || c_.form.window <= 0 || c_.queries <= block_rows) return {};
    std::vector<std::int64_t> order(static_cast<std::size_t>(c_.queries));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::ranges::stable_sort(order, {}, [&](std::int64_t i) { return range(i).first; });
    return order;
  }

  /// What comes to a score after the product: the cosine's division, and the bias by distance.
  void finish_scores(std::int64_t i, KeyRange s, T* scores) const {
    if (!query_lengths_.empty()) {
      T const sharpness = *parameter();
      T const length = query_lengths_[static_cast<std::size_t>(i)];
      for (std::int64_t j = s.first; j < s.last; ++j)
        scores[j - s.first] *= sharpness / (length * key_lengths_[static_cast<std::size_t>(j)] + static_cast<T>(cosine_epsilon));
    }
    if (relative_ == nullptr) return;
    T const* const bias = relative_ + (c_.queries - 1 - at(i));
    for (std::int64_t j = s.first; j < s.last; ++j) scores[j - s.first] += bias[j];
  }
};

}  // namespace heed::kernels
