// Fused attention, forward and backward: scores, mask, window, weights and the weighted sum of one block of queries at a time, over the
// union of its rows' ranges of keys. Dropout's mask is not stored: both passes draw it, keyed by sequence, head, query and key.

#include "autograd/attention/kernel.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "autograd/attention/hard_read_kernel.hpp"
#include "autograd/attention/head_kernel.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/parallel.hpp"

namespace heed::kernels {

KeyRange window_around(double centre, double reach, KeyRange visible) {
  if (visible.first >= visible.last) return {0, 0};
  auto const inside = [&](Index j) { return std::abs(static_cast<double>(j) - centre) <= reach; };
  auto const limited = [&](double j) {
    return static_cast<Index>(std::clamp(j, static_cast<double>(visible.first), static_cast<double>(visible.last - 1)));
  };
  // Rounding of centre ± reach may miss an edge by one: the definition decides.
  Index first = limited(std::floor(centre - reach));
  Index last = limited(std::ceil(centre + reach));
  while (first <= last && !inside(first)) ++first;
  while (last > first && !inside(last)) --last;
  if (first <= last) return {first, last + 1};
  Index const nearest = limited(std::ceil(centre - 0.5));
  return {nearest, nearest + 1};
}

bool has_tiles(AttentionCall const& c) { return !c.form.align && !c.form.hard && !c.form.sum && c.keys > tile_keys; }

namespace {

/// Calls body(b, g) for every sequence and group of heads, on the pool. `products`: matrix products per head with its [n, m] scores.
template <class Body>
void for_groups(AttentionCall const& c, double products, Body const& body) {
  double const product = c.form.sum ? 0.4 * static_cast<double>(c.width) : 0.02 * static_cast<double>(c.width + 20);
  double const pair = products * product + (c.form.dropout ? 1 : 0) + (c.form.align ? 1 : 0);  // nanoseconds for a query and a key
  Index const seen = std::min(c.keys, c.form.visibility.widest(c.keys) + block_rows);
  parallel_each(c.batch * c.groups, pair * static_cast<double>(c.queries * seen * c.heads / c.groups),
                [&](Index at) { body(at / c.groups, at % c.groups); });
}

/// The gradient of one head.
template <class T>
class HeadBackward {
 public:
  /// `targets`: destinations of the head's gradients; null: not needed. `adds`: whether earlier heads have written to the gradients of the
  /// same keys and values. `result`: the forward pass's, if has_tiles().
  HeadBackward(Head<T>& head, AttentionArrays<T*> const& targets, T const* result, T const* dresult, bool adds)
      : head_(head),
        c_(head.c_),
        to_(targets),
        result_(result != nullptr ? result + first_of(head) : nullptr),
        dresult_(dresult + first_of(head)),
        dcontext_(dresult_),
        context_stride_(head.ordered() ? c_.value_width : head.context_stride_),
        dq_(to_.query),
        dquery_({block_rows, c_.width}, c_.in.query.dtype()),
        dscores_(head.block()),
        untouched_(!adds) {
    if (c_.form.hard) hard_.emplace(head);
    if (reads_values()) value_columns_ = head.columns_of(c_.in.value, head.in_.value, head.value_stride_, c_.value_width);
    if (!head.ordered()) return;
    packed_dcontext_ = head.packed(dcontext_, head.context_stride_, c_.value_width);
    dcontext_ = packed_dcontext_.template data<T>().data();
    packed_dq_ = Tensor({c_.queries, c_.width}, c_.in.query.dtype());
    dq_ = packed_dq_.template mutable_data<T>().data();
  }

  void block(Index first, Index rows, T* kept) {
    head_.begin_block(first, rows);
    T* const dq = dq_ + first * head_.query_stride_;
    if (head_.all_.first == head_.all_.last) {
      for (Index i = 0; i < rows; ++i) std::fill_n(dq + i * head_.query_stride_, c_.width, T(0));
      return;
    }
    T const before = sum_before(head_.all_);
    T before_query = 0;
    inner_.clear();
    for (Index i = 0; head_.tiled() && i < rows; ++i) {  // Σ_j p_ij dp_ij of the whole row is the context times its gradient
      Index const context = head_.at(first + i) * head_.context_stride_;
      inner_.push_back(dot_row(result_ + context, dresult_ + context, c_.value_width));
    }
    T* const sum = dquery_.template mutable_data<T>().data();  // because dq may overwrite the queries
    head_.each_tile([&] {
      tile(first, rows, kept, before, before_query, sum);
      before_query = 1;
    });
    for (Index i = 0; i < rows; ++i) std::copy_n(sum + i * c_.width, c_.width, dq + i * head_.query_stride_);
  }

  void finish() {
    if (untouched_) clear();
    if (head_.sum_) head_.sum_->add_keys(to_.key, head_.key_stride_);
    if (head_.ordered()) head_.unpack(dq_, c_.width, to_.query, head_.stride_);
  }

 private:
  /// Whether weights have gradients through all values, and not through the one that was read alone.
  bool reads_values() const { return !hard_ || c_.form.hard->as_if_soft(); }
  static Index first_of(Head<T> const& head) { return head.b_ * head.c_.queries * head.context_stride_ + head.h_ * head.c_.value_width; }

  /// A tile's part in a block's gradients; `dq` [rows, d] is multiplied by before_query first, those of its keys and values by `before`.
  void tile(Index first, Index rows, T* kept, T before, T before_query, T* dq) {
    head_.align(kept, true);
    KeyRange const all = head_.all_;
    T* const ds = dscores_.template mutable_data<T>().data();
    Matrix<T> const dc{dcontext_ + first * context_stride_, context_stride_};
    if (reads_values()) head_.times_columns(1, dc, head_.in_.value, head_.value_stride_, c_.value_width, value_columns_, ds);
    if (hard_) {
      read_gradients(ds);
    } else {
      apply_factors(ds);
      head_.by_keys([&](Index key, Index keys, Index row, Index count) {
        gemm<T>(keys, c_.value_width, count, 1, {read_weights_ + row * head_.row_stride_ + key, head_.row_stride_, true},
                {dc.data + row * dc.leading, dc.leading}, before, to_.value + (all.first + key) * head_.value_stride_, head_.value_stride_);
      });
    }
    for (Index i = 0; i < rows; ++i) score_gradients(i, ds + i * head_.row_stride_, kept);
    if (head_.sum_) return head_.sum_->gradients(first, rows, all, ds, head_.row_stride_, dq, c_.width, to_.weight);
    T const scale = static_cast<T>(c_.form.scale);
    head_.by_keys([&](Index key, Index keys, Index row, Index count) {
      gemm<T>(keys, c_.width, count, scale, {ds + row * head_.row_stride_ + key, head_.row_stride_, true},
              {head_.in_.query + (first + row) * head_.query_stride_, head_.query_stride_}, before,
              to_.key + (all.first + key) * head_.key_stride_, head_.key_stride_);
    });
    head_.by_rows([&](Index row, Index count, Index keys) {
      gemm<T>(count, c_.width, keys, scale, {ds + row * head_.row_stride_, head_.row_stride_},
              {head_.in_.key + all.first * head_.key_stride_, head_.key_stride_}, before_query, dq + row * c_.width, c_.width);
    });
  }

  void clear() {
    for (Index j = 0; j < c_.keys; ++j) {
      std::fill_n(to_.key + j * head_.key_stride_, c_.width, T(0));
      std::fill_n(to_.value + j * head_.value_stride_, c_.value_width, T(0));
    }
  }
  /// The factor on the gradients of keys and values before a block adds to them: 0 if it writes all of them and is the first to write.
  T sum_before(KeyRange all) {
    bool const first = std::exchange(untouched_, false);
    if (first && !head_.sum_ && !hard_ && all.first == 0 && all.last == c_.keys) return 0;
    if (first) clear();
    return 1;
  }

  /// Turns the gradients of the values' weights into those of the align's weights.
  void apply_factors(T* ds) {
    read_weights_ = head_.weights();
    if (!head_.has_factors()) return;
    if (!factored_.defined()) factored_ = head_.block();
    T* const r = factored_.template mutable_data<T>().data();
    std::copy_n(head_.weights(), head_.rows_ * head_.row_stride_, r);
    std::vector<T> f(static_cast<std::size_t>(head_.row_stride_));
    for (Index i = 0; i < head_.rows_; ++i) {
      Index const inside = i * head_.row_stride_ + head_.range_of(i).first - head_.all_.first;
      head_.factors(i, f.data());
      through_factors(i, f.data(), r + inside, ds + inside);
    }
    read_weights_ = r;
  }

  /// With r = a f, a row a of the align's weights, at first in r, and f the Gaussian, dropout or both: da = dr f, dp = Σ_j dr r (j − p)/σ².
  void through_factors(Index i, T const* f, T* r, T* d) {
    KeyRange const s = head_.range_of(i);
    T const square = static_cast<T>(c_.form.deviation * c_.form.deviation);
    T const centre = to_.centres != nullptr ? head_.in_.centres[head_.at(head_.first_ + i)] : T(0);
    T slope = 0;
    for (Index j = 0; j < s.last - s.first; ++j) {
      r[j] *= f[j];
      if (to_.centres != nullptr) slope += d[j] * r[j] * (static_cast<T>(s.first + j) - centre);
      d[j] *= f[j];
    }
    if (to_.centres != nullptr) to_.centres[head_.at(head_.first_ + i)] += slope / square;
  }

  /// The same for a hard read; also adds the gradients of the values.
  void read_gradients(T* ds) {
    std::vector<T> f(c_.form.gaussian ? static_cast<std::size_t>(head_.row_stride_) : 0), r(f.size());
    for (Index i = 0; i < head_.rows_; ++i) {
      KeyRange const s = head_.range_of(i);
      T* const row = ds + i * head_.row_stride_;
      T* const inside = row + s.first - head_.all_.first;
      head_.clear_outside(i, ds);
      hard_->backward(i, dresult_ + head_.at(head_.first_ + i) * head_.context_stride_, inside, to_.value);
      if (!c_.form.gaussian) continue;
      head_.gaussian(i, f.data());
      std::copy_n(head_.row(i), s.last - s.first, r.data());
      through_factors(i, f.data(), r.data(), inside);
    }
  }

  /// Turns the gradients of row i's weights into those of the sums, adding those of all biases on the way.
  void score_gradients(Index i, T* row, T* kept) {
    Index const seen = head_.seen_by(i), query = head_.at(head_.first_ + i);
    KeyRange const s = head_.range_of(i);
    Index const count = s.last - s.first;
    if (c_.form.align) {
      T* const inside = row + (s.first - head_.all_.first);
      head_.clear_outside(i, dscores_.template mutable_data<T>().data());
      T* const parameter = to_.align_of_row != nullptr ? to_.align_of_row + query : to_.align;
      auto const& loops = std::get<RowAlign::Loops<T>>(c_.form.align->loops);
      if (count > 0) loops.gradients(head_.align_row(i, kept + query * kept_numbers, inside, parameter));
    } else {
      T const* const p = head_.weights() + i * head_.row_stride_;
      if (inner_.empty())
        softmax_row_backward<T>(p, row, row, seen);
      else
        softmax_part_backward<T>(p, row, heed::at(inner_, i), row, seen);
    }
    if (count == 0) return;
    T* const de = row + (s.first - head_.all_.first);
    T const* const from = de;
    auto const plus = [](auto const& a, auto const& b) { return a + b; };
    if (to_.relative != nullptr) {
      T* const target = to_.relative + (c_.queries - 1 - query) + s.first;
      transform_row<T>(target, count, plus, target, from);
    }
    if (to_.near != nullptr) {
      auto const near = head_.near_of(i);
      T* const target = to_.near + near.first;
      for (Index j = s.first; j < s.last; ++j) target[near.offset(j)] += de[j - s.first];
    }
    if (to_.of_row != nullptr) {
      to_.of_row[query] += total_row(from, count);
      T* const target = to_.of_column + s.first;
      transform_row<T>(target, count, plus, target, from);
    }
    if (c_.form.softcap) {
      Lanes<T> const cap(static_cast<T>(*c_.form.softcap)), one(T(1));
      transform_row<T>(
          de, count,
          [&](auto const& d, auto const& e) {
            auto const t = e / cap;
            return d * xsimd::fnma(t, t, one);
          },
          from, head_.inside_of(head_.capped_, i));
    }
    if (c_.form.finish) {
      FinishRow<T> finish = head_.finish_row(i, de, head_.inside_of(head_.sums_, i));
      finish.dquery = to_.of_query != nullptr ? to_.of_query + query : nullptr;
      finish.dkeys = to_.of_key != nullptr ? to_.of_key + s.first : nullptr;
      finish.dparameter = to_.parameter;
      c_.form.finish->gradients(finish);
    }
  }

  Head<T>& head_;
  AttentionCall const& c_;
  AttentionArrays<T*> to_;
  T const* result_;
  T const *dresult_, *dcontext_;  ///< unchanged, and in the order of this head's work
  Index context_stride_;
  T* dq_;
  Tensor value_columns_;
  Tensor dquery_;         ///< [block_rows, d]
  std::vector<T> inner_;  ///< of a block's rows, if they are computed in parts: Σ_j p_ij dp_ij
  Tensor dscores_, factored_, packed_dcontext_, packed_dq_;
  std::optional<HardRows<T>> hard_;
  T const* read_weights_ = nullptr;  ///< the values' weights: head_.weights(), or factored_
  bool untouched_;                   ///< no gradient of keys and values has been written yet
};

/// Allocates the gradients of all inputs; shared ones have one per sequence at first: [B, elements].
AttentionInputs gradients_for(AttentionCall const& c, bool over_queries) {
  AttentionInputs g;
  auto const make = [&](AttentionArray const& array, Tensor const& x, Tensor& dx) {
    if (!x.defined() || dx.defined()) return;
    Shape const shape = array.shared() ? Shape{c.batch, x.elements()} : x.shape();
    dx = array.written ? Tensor(shape, x.dtype()) : Tensor::zeros(shape, x.dtype());
  };
  if (over_queries) g.query = c.in.query.detach();
  each_array(make, c.in, g);
  return g;
}
/// Sums the gradients of shared inputs over the sequences, in order.
void sum_shared(AttentionCall const& c, AttentionInputs& g) {
  auto const add_up = [](AttentionArray const& array, Tensor const& x, Tensor& dx) {
    if (x.defined() && array.shared()) dx = sum(dx, {0}).viewed(x.shape());
  };
  each_array(add_up, c.in, g);
}

/// The start of each gradient.
template <class T>
AttentionArrays<T*> beginnings_of(AttentionInputs& g) {
  AttentionArrays<T*> to;
  auto const begin = [](AttentionArray const&, Tensor& dx, T*& first) {
    if (dx.defined()) first = dx.mutable_data<T>().data();
  };
  each_array(begin, g, to);
  return to;
}
/// The start of one head's gradients.
template <class T>
AttentionArrays<T*> targets_of(AttentionCall const& c, AttentionArrays<T*> to, Index b, Index h) {
  auto const advance = [&](AttentionArray const& array, Tensor const& x, T*& first) {
    if (x.defined()) first += first_element(array, x.shape(), c, b, h) + (array.shared() ? b * x.elements() : 0);
  };
  each_array(advance, c.in, to);
  if (!c.form.gaussian) to.centres = nullptr;
  return to;
}

/// The statistics of a head's rows where the forward pass has them in parts.
template <class T>
void measure_rows(AttentionCall const& c, Index b, Index h, T* kept, double* measured) {
  Head<T> head(c, b, h, false, true);
  for (Index first = 0; first < c.queries; first += block_rows) {
    head.begin_block(first, std::min(block_rows, c.queries - first));
    head.align(kept, false);
    for (Index i = 0; i < head.rows_; ++i) head.measure(i, measured + head.at(first + i) * row_statistics);
  }
}

}  // namespace

template <class T>
void attention_forward(AttentionCall const& c, AttentionOutput& output) {
  T* const out = output.context.mutable_data<T>().data();
  T* const numbers = output.kept.mutable_data<T>().data();
  Index* const chosen = c.form.hard ? output.chosen.mutable_data<std::int64_t>().data() : nullptr;
  double* const measured = output.rows != nullptr ? output.rows->mutable_data<double>().data() : nullptr;
  Index const share = c.heads / c.groups;
  for_groups(c, 2, [&](Index b, Index g) {
    for (Index h = g * share; h < (g + 1) * share; ++h) {
      Index const first_query = (b * c.heads + h) * c.queries;
      T* const kept = numbers + first_query * kept_numbers;
      bool const at_once = measured != nullptr && !has_tiles(c);
      if (measured != nullptr && !at_once) measure_rows(c, b, h, kept, measured + first_query * row_statistics);
      Head<T> head(c, b, h, false, at_once);
      T* const first_row = out + b * c.queries * head.context_stride_ + h * c.value_width;
      bool const packs = head.ordered() && !c.form.hard;
      Tensor packed = packs ? Tensor({c.queries, c.value_width}, output.context.dtype()) : Tensor();
      T* const to = packs ? packed.template mutable_data<T>().data() : first_row;
      Index const stride = packs ? c.value_width : head.context_stride_;
      std::vector<T> f(head.has_factors() ? static_cast<std::size_t>(head.row_stride_) : 0);
      std::optional<HardRows<T>> hard;
      if (c.form.hard) hard.emplace(head);
      for (Index first = 0; first < c.queries; first += block_rows) {
        Index const rows = std::min(block_rows, c.queries - first);
        head.begin_block(first, rows);
        T* const context = to + first * stride;
        if (head.tiled()) {
          head.read_by_tiles(kept, f, context, stride);
          continue;
        }
        head.align(kept, false);
        for (Index i = 0; at_once && i < rows; ++i) head.measure(i, measured + (first_query + head.at(first + i)) * row_statistics);
        if (!hard) head.read(f, 0, context, stride);
        for (Index i = 0; hard && i < rows; ++i) hard->forward(i, first_row + head.at(first + i) * head.context_stride_, chosen);
      }
      if (packs) head.unpack(to, c.value_width, first_row, head.context_stride_);
    }
  });
}

template <class T>
AttentionInputs attention_backward(AttentionCall const& c, Tensor const& kept, Tensor const& result, Tensor const& dresult,
                                   bool over_queries) {
  AttentionInputs g = gradients_for(c, over_queries);
  AttentionArrays<T*> const to = beginnings_of<T>(g);
  T const* const r = result.defined() ? result.data<T>().data() : nullptr;
  T const* const dr = dresult.data<T>().data();
  Tensor numbers = kept;
  T* const all_kept = numbers.mutable_data<T>().data();
  Index const share = c.heads / c.groups;
  for_groups(c, 5, [&](Index b, Index group) {
    for (Index h = group * share; h < (group + 1) * share; ++h) {
      Head<T> head(c, b, h, true);
      HeadBackward<T> back(head, targets_of<T>(c, to, b, h), r, dr, h > group * share);
      // Backwards: with causal attention the last queries see all keys, so that their block sets the gradients instead of adding.
      for (Index block = (c.queries + block_rows - 1) / block_rows - 1; block >= 0; --block) {
        Index const first = block * block_rows;
        back.block(first, std::min(block_rows, c.queries - first), all_kept + (b * c.heads + h) * c.queries * kept_numbers);
      }
      back.finish();
    }
  });
  sum_shared(c, g);
  return g;
}

template void attention_forward<float>(AttentionCall const&, AttentionOutput&);
template void attention_forward<double>(AttentionCall const&, AttentionOutput&);
template AttentionInputs attention_backward<float>(AttentionCall const&, Tensor const&, Tensor const&, Tensor const&, bool);
template AttentionInputs attention_backward<double>(AttentionCall const&, Tensor const&, Tensor const&, Tensor const&, bool);

}  // namespace heed::kernels
