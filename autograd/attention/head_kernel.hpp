#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "autograd/attention/block_of_rows.hpp"
#include "autograd/attention/kernel.hpp"
#include "autograd/attention/row_statistics.hpp"
#include "autograd/blas/products.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/kernels/strided.hpp"

namespace heed::kernels {

/// Statistics (RowStatistic) of one row of `count` keys; `distance`: i − j of the row's first key; `first_key`: whether that is key 0.
template <class T>
void measure_row(T const* scores, T const* weights, Index count, double distance, bool first_key, double* out) {
  using V = Lanes<T>;
  std::fill_n(out, row_statistics, std::numeric_limits<double>::quiet_NaN());
  T const total = total_row(weights, count);
  auto const set = [&](RowStatistic which, T value) { out[static_cast<Index>(which)] = static_cast<double>(value); };
  if (count > 0) set(RowStatistic::total, total);
  if (!(total > 0)) return;
  V const part(1 / total), zero(T(0)), one(T(1)), mean(total_row(scores, count) / static_cast<T>(count));
  V entropy = zero, squares = zero, cubes = zero, spread = zero, apart = zero;
  alignas(64) T ramp[static_cast<std::size_t>(lanes<T>)];
  for (Index j = 0; j < lanes<T>; ++j) ramp[j] = static_cast<T>(j);
  V const steps = V::load_aligned(ramp);
  each_batch<T>(count, [&](Index j, auto const& batch) {
    V const p = batch.load(weights + j) * part;  // 0 beyond the row
    entropy -= p * xsimd::log(xsimd::select(p > zero, p, one));
    V const square = p * p;
    squares += square;
    cubes += square * p;
    apart += p * xsimd::abs(V(static_cast<T>(distance - static_cast<double>(j))) - steps);
    V e = batch.load(scores + j) - mean;
    if (Index const rest = count - j; rest < lanes<T>) e = keep_some<T>(e, rest);
    spread += e * e;
  });
  set(RowStatistic::entropy, lane_sum(entropy));
  set(RowStatistic::largest_weight, max_row(weights, count));
  set(RowStatistic::distance, lane_sum(apart));
  set(RowStatistic::first, first_key ? weights[0] / total : T(0));
  set(RowStatistic::squares, lane_sum(squares));
  set(RowStatistic::cubes, lane_sum(cubes));
  set(RowStatistic::score_mean, mean.get(0));
  if (count > 1) set(RowStatistic::score_variance, lane_sum(spread) / static_cast<T>(count - 1));
  set(RowStatistic::largest_score, max_row(scores, count));
}

/// Offset of the first element that head h of sequence b reads in an array of this shape.
inline Index first_element(AttentionArray const& array, Shape const& shape, AttentionCall const& c, Index b, Index h) {
  AttentionPart const head{b, 1, h, 1, 0, c.queries, 0, c.keys};
  Index first = 0, at = 0;
  for (AttentionAxis const axis : array.axes) {
    Index const extent = shape[at++];
    first = first * extent + range_of(axis, extent, head, c).first;
  }
  return first;
}
/// Pointers to the first elements of all arrays; null where undefined.
template <class T>
AttentionArrays<T const*> arrays_of_head(AttentionCall const& c, Index b, Index h) {
  AttentionArrays<T const*> in;
  auto const begin = [&](AttentionArray const& array, Tensor const& x, T const*& first) {
    if (x.defined()) first = x.data<T>().data() + first_element(array, x.shape(), c, b, h);
  };
  each_array(begin, c.in, in);
  return in;
}

/// One head of one sequence: pointers, strides, and the work on a block of its queries. Where every query has its own centre, queries are
/// processed in the order of their windows, so that the windows of a block overlap: row i is query at(i).
template <class T>
class Head : public BlockOfRows {
 public:
  /// `derived`: whether to keep, for every block, what the derivative needs besides the weights. `whole_rows`: no tiles, for measure().
  Head(AttentionCall const& c, Index b, Index h, bool derived, bool whole_rows = false)
      : BlockOfRows(has_tiles(c) && !whole_rows ? tile_keys : c.keys, !c.form.sum),
        c_(c),
        b_(b),
        h_(h),
        in_(arrays_of_head<T>(c, b, h)),
        stride_(c.heads * c.width),
        key_stride_(c.groups * c.width),
        value_stride_(c.groups * c.value_width),
        context_stride_(c.heads * c.value_width + c.form.scores_of_choice()),
        order_(order_of_windows()),
        packed_(order_.empty() ? Tensor() : packed(in_.query, stride_, c.width)),
        query_stride_(order_.empty() ? stride_ : c.width),
        row_stride_((std::min(tile_, widest_block()) + lanes<T> - 1) / lanes<T> * lanes<T> + lanes<T>),
        weights_(block()) {
    if (!order_.empty()) in_.query = packed_.template data<T>().data();
    if (c.form.sum)
      sum_ = c.form.sum->of_head(PairRows<T>{in_.query, query_stride_, in_.key, key_stride_, in_.weight, c.queries, c.keys, c.width});
    else
      key_columns_ = columns_of(c.in.key, in_.key, key_stride_, c.width);
    if (whole_rows) scores_ = block();
    if (!derived) return;
    if (c.form.finish) sums_ = block();
    if (c.form.softcap) capped_ = block();
    if (c.form.align && c.form.align->wants_scores) scores_ = block();
  }

  /// Statistics (RowStatistic) of row i of whole rows after align(), of the weights times the Gaussian if there is one.
  void measure(Index i, double* out) {
    KeyRange const s = range_of(i);
    auto const distance = static_cast<double>(c_.form.visibility.offset + at(first_ + i) - s.first);
    std::vector<T> room;
    bool const from_start = s.first == 0 && c_.form.visibility.first_key == 0;
    measure_row<T>(inside_of(scores_, i), weighed(i, room), s.last - s.first, distance, from_start, out);
  }
  /// Weights of row i, times the Gaussian if there is one (`room`: for these).
  T const* weighed(Index i, std::vector<T>& room) {
    T const* const a = row(i);
    if (!c_.form.gaussian) return a;
    room.resize(static_cast<std::size_t>(range_of(i).last - range_of(i).first));
    gaussian(i, room.data());
    for (std::size_t j = 0; j < room.size(); ++j) room[j] *= a[j];
    return room.data();
  }

  bool ordered() const { return !order_.empty(); }
  Index at(Index row) const { return order_.empty() ? row : heed::at(order_, row); }
  /// The rows x [n, width] in processing order.
  Tensor packed(T const* x, Index stride, Index width) const {
    Tensor rows({c_.queries, width}, c_.in.query.dtype());
    T* const out = rows.template mutable_data<T>().data();
    for (Index i = 0; i < c_.queries; ++i) std::copy_n(x + at(i) * stride, width, out + i * width);
    return rows;
  }
  void unpack(T const* rows, Index width, T* x, Index stride) const {
    for (Index i = 0; i < c_.queries; ++i) std::copy_n(rows + i * width, width, x + at(i) * stride);
  }
  /// An array for the scores of a block.
  Tensor block() const { return Tensor({std::min(block_rows, c_.queries), row_stride_}, c_.in.query.dtype()); }

  KeyRange visible(Index i) const { return c_.form.visibility.range(b_, i, c_.keys); }
  /// The visible keys inside query i's window.
  KeyRange range(Index i) const {
    if (c_.form.window <= 0) return visible(i);
    double const centre = in_.centres != nullptr ? static_cast<double>(in_.centres[i]) : static_cast<double>(c_.form.visibility.offset + i);
    return window_around(centre, c_.form.window, visible(i));
  }
  void begin_block(Index first, Index rows) {
    begin(first, rows, c_.keys, [&](Index i) { return range(at(i)); });
  }

  /// A head's keys or values from *first on, by tiles of columns, [tiles, width, column_stride()]: transposed once, not for every block.
  Tensor columns_of(Tensor const& x, T const* first, Index stride, Index width) const {
    if (tile_ > tile_keys || c_.queries <= block_rows) return {};
    Tensor columns({(c_.keys + tile_ - 1) / tile_, width, column_stride()}, x.dtype());
    for (Index j = 0; j < c_.keys; j += tile_)
      copy_strided({width, std::min(tile_, c_.keys - j)}, x, {first - x.template data<T>().data() + j * stride, {1, stride}}, columns,
                   {j / tile_ * width * column_stride(), {column_stride(), 1}});
    return columns;
  }
  Index column_stride() const { return tile_ / lanes<T> * lanes<T> + 2 * lanes<T>; }  // no power of 2, whose multiples evict one another
  /// s [rows, all] = factor · a xᵀ with the keys or values x [m, width].
  void times_columns(T factor, Matrix<T> const& a, T const* x, Index stride, Index width, Tensor const& columns, T* s) {
    Matrix<T> b{x + all_.first * stride, stride, true};
    if (columns.defined())
      b = {columns.template data<T>().data() + all_.first / tile_ * width * column_stride() + all_.first % tile_, column_stride()};
    by_rows([&](Index first, Index rows, Index keys) {
      gemm<T>(rows, keys, width, factor, {a.data + first * a.leading, a.leading}, b, 0, s + first * row_stride_, row_stride_);
    });
  }

  /// Sets weights_ [rows, all] to the sums of all pairs.
  void sums() {
    Index const seen = all_.last - all_.first;
    T* const w = weights();
    if (sum_) {
      sum_->sums(first_, ranges_, all_, w, row_stride_);
    } else if (seen > 0) {
      times_columns(static_cast<T>(c_.form.scale), {in_.query + first_ * query_stride_, query_stride_}, in_.key, key_stride_, c_.width,
                    key_columns_, w);
    }
  }

  /// Sets weights_ [rows, all]: the weights within each row's range, 0 outside. Writes `kept`, or reads it if `known`.
  void align(T* kept, bool known) {
    sums();
    for (Index i = 0; i < rows_; ++i) {
      T* const inside = row(i);
      Index const count = range_of(i).last - range_of(i).first;
      finish_scores(i);
      if (scores_.defined()) std::copy_n(inside, count, inside_of(scores_, i));
      T* const numbers = kept + at(first_ + i) * kept_numbers;
      if (c_.form.align) {
        if (count > 0) std::get<RowAlign::Loops<T>>(c_.form.align->loops).weights(align_row(i, numbers, nullptr), known);
      } else if (known) {
        scaled_exp_row(inside, numbers[0], numbers[1], inside, count);
      } else if (count > 0) {
        auto const sum = softmax_row(inside, inside, count);
        numbers[0] = sum.m, numbers[1] = 1 / sum.total;
      }
      clear_outside(i, weights());
    }
  }

  /// The contexts of softmax's rows, written to `to`, its first row, tile by tile: Σ_j e^(e_ij − m_i) v_j with the largest score m_i so
  /// far, multiplied by e^(m_i − m′_i) where a tile has a larger one, and in the end by 1/Σ_j e^(e_ij − m_i) (Milakov & Gimelshein 2018).
  void read_by_tiles(T* kept, std::vector<T>& f, T* to, Index stride) {
    auto const context = [&](Index i) { return to + i * stride; };
    auto const multiply = [&](Index i, T factor) {
      for (Index k = 0; k < c_.value_width; ++k) context(i)[k] *= factor;
    };
    std::vector<SoftmaxSum<T>> sum(static_cast<std::size_t>(rows_), {-std::numeric_limits<T>::infinity(), 0});
    T before = 0;
    each_tile([&] {
      sums();
      for (Index i = 0; i < rows_; ++i) {
        finish_scores(i);
        if (Index const count = range_of(i).last - range_of(i).first; count > 0)
          if (T const factor = softmax_part(row(i), count, heed::at(sum, i)); factor != 1 && before != 0) multiply(i, factor);
        clear_outside(i, weights());
      }
      read(f, before, to, stride);
      before = 1;
    });
    for (Index i = 0; i < rows_; ++i) {
      auto const [m, total] = heed::at(sum, i);
      T* const numbers = kept + at(first_ + i) * kept_numbers;
      numbers[0] = m, numbers[1] = 1 / total;
      if (range_of(i).first < range_of(i).last) multiply(i, numbers[1]);
    }
  }

  /// Adds the contexts of computed weights to `before` · those in `to`, its first row; changes the weights by the factors (`f`: room).
  void read(std::vector<T>& f, T before, T* to, Index stride) {
    for (Index i = 0; has_factors() && i < rows_; ++i) {
      factors(i, f.data());
      KeyRange const s = range_of(i);
      T* const inside = row(i);
      for (Index j = 0; j < s.last - s.first; ++j) inside[j] *= heed::at(f, j);
    }
    by_rows([&](Index first, Index rows, Index keys) {
      gemm<T>(rows, c_.value_width, keys, 1, {weights() + first * row_stride_, row_stride_},
              {in_.value + all_.first * value_stride_, value_stride_}, before, to + first * stride, stride);
    });
  }

  /// Sets to 0 what a block's row i has outside its range, where products read it.
  void clear_outside(Index i, T* block) const {
    T* const row = block + i * row_stride_;
    KeyRange const s = range_of(i);
    std::fill_n(row, s.first - all_.first, T(0));
    std::fill(row + (s.last - all_.first), row + seen_by(i), T(0));
  }

  /// The align's view of row i; in the derivative with the weights' gradients.
  AlignRow<T> align_row(Index i, T* kept, T* dweights, T* dparameter = nullptr) {
    KeyRange const s = range_of(i);
    T const* const given = in_.align_of_row != nullptr ? in_.align_of_row + at(first_ + i) : in_.align;
    T const parameter = given != nullptr ? *given : T(0);
    T* const scores = scores_.defined() ? inside_of(scores_, i) : row(i);
    Index const seen = c_.form.visibility.count(b_, at(first_ + i), c_.keys);
    return {scores, row(i), dweights, s.last - s.first, static_cast<double>(seen), parameter, dparameter, kept};
  }
  /// The finish's view of row i.
  FinishRow<T> finish_row(Index i, T* scores, T const* sums) const {
    KeyRange const s = range_of(i);
    Index const query = at(first_ + i), parameters = in_.parameter != nullptr ? c_.in.parameter.size(1) : 0;
    auto const shift = static_cast<double>(c_.form.visibility.offset + query - s.first), root = std::sqrt(static_cast<double>(c_.width));
    T const of_query = in_.of_query != nullptr ? in_.of_query[query] : T(0);
    T const* const of_keys = in_.of_key != nullptr ? in_.of_key + s.first : nullptr;
    return {scores, sums, s.last - s.first, shift, root, of_query, of_keys, in_.parameter, parameters};
  }

  /// Whether the weights are multiplied by factors().
  bool has_factors() const { return c_.form.gaussian || c_.form.dropout; }
  /// Factors on row i's weights over its range: exp(−(j − p)²/(2σ²)) with a Gaussian, times 0 or 1/(1 − rate) with dropout.
  void factors(Index i, T* out) const {
    KeyRange const s = range_of(i);
    gaussian(i, out);
    drop(i, s.first, out, s.last - s.first);
  }
  /// Dropout, if there is one, of numbers of row i from a key on.
  void drop(Index i, Index key, T* x, Index count) const {
    if (!c_.form.dropout) return;
    Index const element = ((b_ * c_.heads + h_) * c_.queries + at(first_ + i)) * c_.keys + key;  // of [B, H, n, m]
    dropout_row(c_.form.dropout->rate, c_.form.dropout->stream, static_cast<std::uint64_t>(element), x, x, count);
  }

  /// The Gaussian alone; 1 without one.
  void gaussian(Index i, T* out) const {
    KeyRange const s = range_of(i);
    if (!c_.form.gaussian) {
      std::fill_n(out, s.last - s.first, T(1));
      return;
    }
    T const centre = in_.centres[at(first_ + i)], deviation = static_cast<T>(c_.form.deviation);
    for (Index j = s.first; j < s.last; ++j) {
      T const z = (static_cast<T>(j) - centre) / deviation;
      out[j - s.first] = std::exp(-z * z / 2);
    }
  }

  /// The start of row i's range in a block.
  T* inside_of(Tensor& block, Index i) {
    return block.template mutable_data<T>().data() + i * row_stride_ + (range_of(i).first - all_.first);
  }
  T* row(Index i) { return inside_of(weights_, i); }
  T* weights() { return weights_.template mutable_data<T>().data(); }
  /// Where row i's clipped-distance biases lie in the head's part: key j's is at first + offset(j).
  struct Near {
    Index first;
    Index query, reach;
    Index offset(Index j) const { return std::clamp(j - query, -reach, reach) + reach; }
  };
  Near near_of(Index i) const {
    Index const query = at(first_ + i), size = c_.in.near.size(3);
    return {query * c_.heads * size, c_.form.visibility.offset + query, size / 2};
  }

  AttentionCall const& c_;
  Index b_, h_;
  AttentionArrays<T const*> in_;  ///< of this head; queries in processing order
  Index stride_, key_stride_, value_stride_, context_stride_;
  std::vector<Index> order_;
  Tensor packed_;
  Index query_stride_, row_stride_;
  Tensor weights_, key_columns_;
  Tensor sums_, capped_, scores_;  // of a block, for the derivative: before the finish, after the cap, and with biases
  std::unique_ptr<HeadSum<T>> sum_;

 private:
  /// The queries' order by window; empty: unchanged.
  std::vector<Index> order_of_windows() const {
    if (in_.centres == nullptr || c_.form.window <= 0 || c_.queries <= block_rows) return {};
    std::vector<Index> order(static_cast<std::size_t>(c_.queries));
    std::iota(order.begin(), order.end(), Index{0});
    std::ranges::stable_sort(order, {}, [&](Index i) { return range(i).first; });
    return order;
  }

  /// The largest number of keys that a block's queries see together.
  Index widest_block() {
    if (c_.form.window <= 0 && c_.form.visibility.sees <= 0) return c_.keys;
    Index widest = 0;
    for (Index first = 0; first < c_.queries; first += block_rows) {
      begin_block(first, std::min(block_rows, c_.queries - first));
      widest = std::max(widest, all_.last - all_.first);
    }
    return widest;
  }

  /// Turns row i's sums into scores.
  void finish_scores(Index i) {
    KeyRange const s = range_of(i);
    Index const query = at(first_ + i), count = s.last - s.first;
    T* const e = row(i);
    if (count == 0) return;
    if (sums_.defined()) std::copy_n(e, count, inside_of(sums_, i));
    if (c_.form.finish) c_.form.finish->scores(finish_row(i, e, e));
    if (c_.form.softcap) {
      Lanes<T> const cap(static_cast<T>(*c_.form.softcap));
      transform_row<T>(
          e, count, [&](auto const& x) { return cap * xsimd::tanh(x / cap); }, e);
      if (capped_.defined()) std::copy_n(e, count, inside_of(capped_, i));
    }
    auto const plus = [](auto const& a, auto const& b) { return a + b; };
    T const* const before = e;
    if (in_.relative != nullptr) transform_row<T>(e, count, plus, before, in_.relative + (c_.queries - 1 - query) + s.first);
    if (in_.near != nullptr) {
      Near const near = near_of(i);
      T const* const bias = in_.near + near.first;
      for (Index j = s.first; j < s.last; ++j) e[j - s.first] += bias[near.offset(j)];
    }
    if (in_.of_row != nullptr) {
      Lanes<T> const of_row(in_.of_row[query]);
      transform_row<T>(
          e, count, [&](auto const& a, auto const& b) { return a + (of_row + b); }, before, in_.of_column + s.first);
    }
  }
};

}  // namespace heed::kernels
