// Fused attention, forward and backward: scores, mask, window, softmax and the weighted sum of one block of queries at a time. Every align
// that is fused here (softmax, local_m, local_p) is a softmax over a range of keys, so a block needs the union of its rows' ranges and
// no more. Dropout's mask is never held: forward and backward draw it, keyed by sequence, head, query and key.

#include "autograd/kernels/attention.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "autograd/kernels/attention_head.hpp"
#include "autograd/parallel.hpp"

namespace heed::kernels {

KeyRange window_around(double centre, double reach, std::int64_t visible) {
  if (visible == 0) return {0, 0};
  auto const inside = [&](std::int64_t j) { return std::abs(static_cast<double>(j) - centre) <= reach; };
  auto const limited = [&](double j) { return static_cast<std::int64_t>(std::clamp(j, 0.0, static_cast<double>(visible - 1))); };
  // Rounding of centre ± reach may miss an edge by one: the definition decides.
  std::int64_t first = limited(std::floor(centre - reach));
  std::int64_t last = limited(std::ceil(centre + reach));
  while (first <= last && !inside(first)) ++first;
  while (last > first && !inside(last)) --last;
  if (first <= last) return {first, last + 1};
  std::int64_t const nearest = limited(std::ceil(centre - 0.5));
  return {nearest, nearest + 1};
}

namespace {

/// Rows of a matrix that is written.
template <class T>
struct Block {
  T* data;
  std::int64_t stride;
};

/// Calls body(b, h) for every sequence and head, on the pool. `products`: matrix products that it makes of the head's [n, m] scores.
template <class Body>
void for_heads(AttentionCall const& c, double products, Body const& body) {
  double const product =
      c.form.score == AttentionForm::Score::additive ? 0.4 * static_cast<double>(c.width) : 0.02 * static_cast<double>(c.width + 20);
  double const pair = products * product + (c.form.dropout ? 1 : 0);  // nanoseconds for a query and a key
  parallel_for(
      c.batch * c.form.heads, pair * static_cast<double>(c.queries * c.keys),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t at = begin; at < end; ++at) body(at / c.form.heads, at % c.form.heads);
      },
      1, Cut::fine);
}

/// The gradient of one head; what heads of different sequences share is summed later.
template <class T>
class HeadBackward {
 public:
  HeadBackward(Head<T>& head, AttentionGradients& g, T const* dcontext, T* shared_parameter, T* shared_relative)
      : head_(head),
        c_(head.c_),
        dcontext_(dcontext + head.b_ * c_.queries * head.value_stride_ + head.h_ * c_.value_width),
        context_stride_(head.ordered() ? c_.value_width : head.value_stride_),
        dquery_(g.query.mutable_data<T>().data() + head.b_ * c_.queries * head.stride_ + head.h_ * c_.width),
        dq_(dquery_),
        dk_(g.key.mutable_data<T>().data() + head.b_ * c_.keys * head.stride_ + head.h_ * c_.width),
        dv_(g.value.mutable_data<T>().data() + head.b_ * c_.keys * head.value_stride_ + head.h_ * c_.value_width),
        dparameter_(shared_parameter),
        drelative_(shared_relative),
        dcentres_(c_.form.gaussian ? g.centres.mutable_data<T>().data() + (head.b_ * c_.form.heads + head.h_) * c_.queries : nullptr),
        dscores_({std::min(block_rows, c_.queries), head.row_stride_}, c_.query.dtype()) {
    if (head.ordered()) {
      packed_dcontext_ = head.packed(dcontext_, head.value_stride_, c_.value_width);
      dcontext_ = packed_dcontext_.template data<T>().data();
      packed_dq_ = Tensor({c_.queries, c_.width}, c_.query.dtype());
      dq_ = packed_dq_.template mutable_data<T>().data();
    }
    if (head.additive_) dkeys_.assign(static_cast<std::size_t>(c_.width * head.additive_->padded()), T(0));
    if (!head.query_lengths_.empty()) dkey_lengths_.assign(static_cast<std::size_t>(c_.keys), T(0));
  }

  void block(std::int64_t first, std::int64_t rows, T* log_sum_exp) {
    head_.begin_block(first, rows);
    head_.softmax(log_sum_exp, true);
    KeyRange const all = head_.all_;
    std::int64_t const seen = all.last - all.first;
    if (seen == 0) {
      for (std::int64_t i = 0; i < rows; ++i) std::fill_n(dq_ + (first + i) * head_.query_stride_, c_.width, T(0));
      for (std::int64_t i = 0; dcentres_ != nullptr && i < rows; ++i) dcentres_[head_.at(first + i)] = 0;
      return;
    }
    T const before = sum_before(all);
    T* const ds = dscores_.template mutable_data<T>().data();
    Matrix<T> const dc{dcontext_ + first * context_stride_, context_stride_};
    gemm<T>(rows, seen, c_.value_width, 1, dc, {head_.v + all.first * head_.value_stride_, head_.value_stride_, true}, 0, ds,
            head_.row_stride_);
    apply_factors(ds);
    gemm<T>(seen, c_.value_width, rows, 1, {read_weights_, head_.row_stride_, true}, dc, before, dv_ + all.first * head_.value_stride_,
            head_.value_stride_);
    for (std::int64_t i = 0; i < rows; ++i)
      softmax_row_backward<T>(head_.weights() + i * head_.row_stride_, ds + i * head_.row_stride_, ds + i * head_.row_stride_, seen);
    if (drelative_ != nullptr) add_relative(ds);
    if (head_.additive_) {
      return head_.additive_->gradients(first, rows, all, head_.parameter(), ds, head_.row_stride_, dq_ + first * head_.query_stride_,
                                        head_.query_stride_, dkeys_.data(), dparameter_);
    }
    if (!head_.query_lengths_.empty()) cosine_gradient(ds);
    T const scale = head_.product_scale();
    gemm<T>(rows, c_.width, seen, scale, {ds, head_.row_stride_}, {head_.k + all.first * head_.stride_, head_.stride_}, 0,
            dq_ + first * head_.query_stride_, head_.query_stride_);
    gemm<T>(seen, c_.width, rows, scale, {ds, head_.row_stride_, true}, {head_.q + first * head_.query_stride_, head_.query_stride_},
            before, dk_ + all.first * head_.stride_, head_.stride_);
    if (!head_.query_lengths_.empty()) add_query_lengths();
  }

  void finish() {
    if (untouched_) clear();
    if (head_.additive_) {
      for (std::int64_t j = 0; j < c_.keys; ++j) {
        for (std::int64_t c = 0; c < c_.width; ++c)
          dk_[j * head_.stride_ + c] = 4 * head_.parameter()[c] * dkeys_[static_cast<std::size_t>(c * head_.additive_->padded() + j)];
      }
    }
    for (std::size_t j = 0; j < dkey_lengths_.size(); ++j)
      add_length(head_.k, dk_, head_.stride_, static_cast<std::int64_t>(j), head_.key_lengths_[j], dkey_lengths_[j]);
    if (head_.ordered()) head_.unpack(dq_, c_.width, dquery_, head_.stride_);
  }

 private:
  std::size_t place(std::int64_t i) const { return static_cast<std::size_t>(i); }

  void clear() {
    for (std::int64_t j = 0; j < c_.keys; ++j) {
      std::fill_n(dk_ + j * head_.stride_, c_.width, T(0));
      std::fill_n(dv_ + j * head_.value_stride_, c_.value_width, T(0));
    }
  }
  /// What the gradients of keys and values are multiplied by before a block adds to them: 0 where nothing was written yet and the block
  /// writes all of them.
  T sum_before(KeyRange all) {
    bool const first = std::exchange(untouched_, false);
    if (first && all.first == 0 && all.last == c_.keys) return 0;
    if (first) clear();
    return 1;
  }

  /// With r = P f the values' weights, P the softmax and f the Gaussian and dropout: dP = dr f and dp = Σ_j dr r (j − p)/σ².
  void apply_factors(T* ds) {
    read_weights_ = head_.weights();
    if (!head_.has_factors()) return;
    if (!factored_.defined()) factored_ = Tensor(dscores_.shape(), dscores_.dtype());
    T* const r = factored_.template mutable_data<T>().data();
    std::copy_n(head_.weights(), head_.rows_ * head_.row_stride_, r);
    T const square = static_cast<T>(c_.form.deviation * c_.form.deviation);
    std::vector<T> f(place(c_.keys));
    for (std::int64_t i = 0; i < head_.rows_; ++i) {
      KeyRange const s = head_.ranges_[place(i)];
      std::int64_t const at = i * head_.row_stride_ + s.first - head_.all_.first;
      head_.factors(i, f.data());
      if (dcentres_ == nullptr) {
        for (std::int64_t j = 0; j < s.last - s.first; ++j) r[at + j] *= f[place(j)], ds[at + j] *= f[place(j)];
        continue;
      }
      T const centre = head_.centres_[head_.at(head_.first_ + i)];
      T slope = 0;
      for (std::int64_t j = 0; j < s.last - s.first; ++j) {
        r[at + j] *= f[place(j)];
        slope += ds[at + j] * r[at + j] * (static_cast<T>(s.first + j) - centre);
        ds[at + j] *= f[place(j)];
      }
      dcentres_[head_.at(head_.first_ + i)] = slope / square;
    }
    read_weights_ = r;
  }

  void add_relative(T const* ds) {
    for (std::int64_t i = 0; i < head_.rows_; ++i) {
      KeyRange const s = head_.ranges_[place(i)];
      T* const target = drelative_ + (c_.queries - 1 - head_.at(head_.first_ + i));
      T const* const from = ds + i * head_.row_stride_ - head_.all_.first;
      for (std::int64_t j = s.first; j < s.last; ++j) target[j] += from[j];
    }
  }

  /// e = β u/(ab + ε), u = q·k: leaves du in ds, and sums the gradients of β, a and b.
  void cosine_gradient(T* ds) {
    T const sharpness = *head_.parameter();
    std::int64_t const seen = head_.all_.last - head_.all_.first;
    dquery_lengths_.assign(place(head_.rows_), T(0));
    std::vector<T> u(place(seen));
    for (std::int64_t i = 0; i < head_.rows_; ++i) {
      T const a = head_.query_lengths_[place(head_.first_ + i)];
      T const* const qi = head_.q + (head_.first_ + i) * head_.query_stride_;
      T* const row = ds + i * head_.row_stride_;
      gemm<T>(1, seen, c_.width, 1, {qi, head_.query_stride_}, {head_.k + head_.all_.first * head_.stride_, head_.stride_, true}, 0,
              u.data(), seen);
      double dsharpness = 0;
      for (std::int64_t j = 0; j < seen; ++j) {
        T const b = head_.key_lengths_[place(head_.all_.first + j)];
        T const below = a * b + static_cast<T>(cosine_epsilon);
        T const cosine = u[place(j)] / below;
        dsharpness += static_cast<double>(row[j] * cosine);
        T const dbelow = -row[j] * sharpness * cosine / below;
        dquery_lengths_[place(i)] += dbelow * b;
        dkey_lengths_[place(head_.all_.first + j)] += dbelow * a;
        row[j] *= sharpness / below;
      }
      *dparameter_ += static_cast<T>(dsharpness);
    }
  }
  void add_query_lengths() {
    for (std::int64_t i = 0; i < head_.rows_; ++i)
      add_length(head_.q, dq_, head_.query_stride_, head_.first_ + i, head_.query_lengths_[place(head_.first_ + i)],
                 dquery_lengths_[place(i)]);
  }
  /// d‖x‖/dx = x/‖x‖; 0 at the zero vector.
  void add_length(T const* x, T* dx, std::int64_t stride, std::int64_t row, T length, T dlength) const {
    if (length == 0) return;
    for (std::int64_t c = 0; c < c_.width; ++c) dx[row * stride + c] += dlength / length * x[row * stride + c];
  }

  Head<T>& head_;
  AttentionCall const& c_;
  T const* dcontext_;
  std::int64_t context_stride_;
  T* dquery_;
  T *dq_, *dk_, *dv_, *dparameter_, *drelative_, *dcentres_;
  Tensor dscores_, factored_, packed_dcontext_, packed_dq_;
  T const* read_weights_ = nullptr;  ///< what the values are multiplied by: head_.weights(), or factored_
  bool untouched_ = true;            ///< nothing has been written to dk and dv
  std::vector<T> dkeys_, dkey_lengths_, dquery_lengths_;
};

/// Σ over the sequences of per-head sums [B·H, n] → [H, n], in order.
Tensor summed_over_batch(Tensor const& parts, std::int64_t batch, Shape const& shape) {
  return parts.defined() ? sum(parts.viewed({batch, shape.elements()}), {0}).viewed(shape) : Tensor();
}

}  // namespace

template <class T>
void attention_forward(AttentionCall const& c, Tensor& context, Tensor& log_sum_exp) {
  T* const out = context.mutable_data<T>().data();
  T* const lse = log_sum_exp.mutable_data<T>().data();
  for_heads(c, 2, [&](std::int64_t b, std::int64_t h) {
    Head<T> head(c, b, h);
    T* const first_row = out + b * c.queries * head.value_stride_ + h * c.value_width;
    Tensor packed = head.ordered() ? Tensor({c.queries, c.value_width}, context.dtype()) : Tensor();
    Block<T> const to =
        head.ordered() ? Block<T>{packed.template mutable_data<T>().data(), c.value_width} : Block<T>{first_row, head.value_stride_};
    std::vector<T> f(head.has_factors() ? static_cast<std::size_t>(c.keys) : 0);
    for (std::int64_t first = 0; first < c.queries; first += block_rows) {
      std::int64_t const rows = std::min(block_rows, c.queries - first);
      head.begin_block(first, rows);
      head.softmax(lse + (b * c.form.heads + h) * c.queries + first, false);
      for (std::int64_t i = 0; head.has_factors() && i < rows; ++i) {
        head.factors(i, f.data());
        KeyRange const s = head.ranges_[static_cast<std::size_t>(i)];
        T* const row = head.row(i);
        for (std::int64_t j = 0; j < s.last - s.first; ++j) row[j] *= f[static_cast<std::size_t>(j)];
      }
      gemm<T>(rows, c.value_width, head.all_.last - head.all_.first, 1, {head.weights(), head.row_stride_},
              {head.v + head.all_.first * head.value_stride_, head.value_stride_}, 0, to.data + first * to.stride, to.stride);
    }
    if (head.ordered()) head.unpack(to.data, c.value_width, first_row, head.value_stride_);
  });
}

template <class T>
AttentionGradients attention_backward(AttentionCall const& c, Tensor const& log_sum_exp, Tensor const& dcontext) {
  auto const like = [](Tensor const& x) { return x.defined() ? Tensor(x.shape(), x.dtype()) : Tensor(); };
  AttentionGradients g{like(c.query), like(c.key), like(c.value), {}, {}, like(c.centres)};
  if (c.centres.defined() && !c.form.gaussian) g.centres = Tensor::zeros(c.centres.shape(), c.centres.dtype());
  std::int64_t const heads = c.form.heads;
  Tensor parameter_parts = c.parameter.defined() ? Tensor::zeros({c.batch, c.parameter.elements()}, c.parameter.dtype()) : Tensor();
  Tensor relative_parts = c.relative.defined() ? Tensor::zeros({c.batch, c.relative.elements()}, c.relative.dtype()) : Tensor();
  T const* const dc = dcontext.data<T>().data();
  Tensor kept = log_sum_exp;
  T* const lse = kept.mutable_data<T>().data();
  auto const part = [&](Tensor& parts, Tensor const& whole, std::int64_t b, std::int64_t h) -> T* {
    return parts.defined() ? parts.mutable_data<T>().data() + b * whole.elements() + h * (whole.elements() / heads) : nullptr;
  };
  for_heads(c, 5, [&](std::int64_t b, std::int64_t h) {
    Head<T> head(c, b, h);
    HeadBackward<T> back(head, g, dc, part(parameter_parts, c.parameter, b, h), part(relative_parts, c.relative, b, h));
    // Backwards: the last queries, where attention is causal, see all keys, so that their block need not add to anything.
    for (std::int64_t block = (c.queries + block_rows - 1) / block_rows - 1; block >= 0; --block) {
      std::int64_t const first = block * block_rows;
      back.block(first, std::min(block_rows, c.queries - first), lse + (b * heads + h) * c.queries + first);
    }
    back.finish();
  });
  if (c.parameter.defined()) g.parameter = summed_over_batch(parameter_parts, c.batch, c.parameter.shape());
  if (c.relative.defined()) g.relative = summed_over_batch(relative_parts, c.batch, c.relative.shape());
  return g;
}

template void attention_forward<float>(AttentionCall const&, Tensor&, Tensor&);
template void attention_forward<double>(AttentionCall const&, Tensor&, Tensor&);
template AttentionGradients attention_backward<float>(AttentionCall const&, Tensor const&, Tensor const&);
template AttentionGradients attention_backward<double>(AttentionCall const&, Tensor const&, Tensor const&);

}  // namespace heed::kernels
