// Linear attention: forward and backward in chunks, and token by token.

#include "autograd/attention/linear_kernel.hpp"

#include <algorithm>

#include "autograd/attention/linear_head.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/parallel.hpp"

namespace heed::kernels {

namespace {

/// The gradient of one head, chunk by chunk from the last.
template <class T>
class LinearHeadBackward {
  static constexpr Index chunk = linear_chunk;

 public:
  LinearHeadBackward(LinearExtents const& extents, LinearInputs const& in, LinearInputs& g, T const* dcontext, Index b, Index h)
      : head_(extents, in, b, h),
        x(extents),
        d(x.width),
        e(x.value_width),
        n(head_.n),
        dcontext_(x, dcontext, e, b, h),
        dquery_(rows_of<T>(x, g.query, d, b, h)),
        dkey_(rows_of<T>(x, g.key, d, b, h)),
        dvalue_(rows_of<T>(x, g.value, e, b, h)),
        derase_(rows_of<T>(x, g.erase, d, b, h)),
        dlog_decay_(rows_of<T>(x, g.log_decay, x.decays, b, h)),
        room_({n * (e + chunk + d) + chunk * (d + e + 1) + (chunk + 4) * x.decays}, in.query.dtype()) {
    dreads_ = room_.template mutable_data<T>().data(), dm_ = dreads_ + n * e, dy_ = dm_ + n * chunk, dk_ = dy_ + n * d;
    dw_ = dk_ + chunk * d, dg_ = dw_ + chunk * e, far_ = dg_ + chunk * x.decays, later_ = far_ + x.decays;
    sum_ = later_ + x.decays, pairs_ = sum_ + x.decays;
  }

  /// The chunk that begins at a token, with the state before it; ds, the gradient of the state after it, becomes that of the state before.
  void step(Index token, T const* state, T* ds) {
    head_.load(token);
    head_.read(state, chunk);
    dcontext_.load(token, head_.count, dreads_);
    writes(ds);
    gemm<T>(n, chunk, e, 1, {dreads_, e}, {head_.w, e, true}, 0, dm_, chunk);
    if (x.decays > 0) std::fill_n(dg_, chunk * x.decays, T(0));
    if (x.decays == 1) pairs_of_decays();
    head_.mask(dm_);
    gemm<T>(n, d, e, 1, {dreads_, e}, {state, e, true}, 0, dy_, d);
    gemm<T>(chunk, d, e, 1, {head_.w, e}, {ds, e, true}, 0, dk_, d);
    if (x.decays > 0) through_decays(state, ds);
    if (!head_.by_pair) {
      gemm<T>(n, d, chunk, 1, {dm_, chunk}, {head_.k, d}, 1, dy_, d);
      gemm<T>(chunk, d, n, 1, {dm_, chunk, true}, {head_.y, d}, 1, dk_, d);
    }
    head_.decay_state(ds, ds);
    gemm<T>(d, e, n, 1, {head_.yc, d, true}, {dreads_, e}, 1, ds, e);
    dquery_.store(token, head_.count, dy_);
    derase_.store(token, head_.count, dy_ + (n - chunk) * d);
    dkey_.store(token, head_.count, dk_);
    dvalue_.store(token, head_.count, dw_);
    dlog_decay_.store(token, head_.count, dg_);
  }

 private:
  /// dw, of V; dreads: those of B, [dO; −dV].
  void writes(T const* ds) {
    gemm<T>(chunk, e, d, 1, {head_.keys_to(head_.blocks), d}, {ds, e}, 0, dw_, e);
    gemm<T>(chunk, e, chunk, 1, {head_.m, chunk, true}, {dreads_, e}, 1, dw_, e);
    if (!x.erases) return;
    solve_unit_lower<T>(chunk, e, head_.m + chunk * chunk, chunk, dw_, e, true);
    transform_row<T>(
        dreads_ + chunk * e, chunk * e, [](auto const& v) { return -v; }, dw_);
  }

  /// What a head's decays are given by the pairs around them: dg_t = Σ_{i ≥ t > j} dM_ij M_ij.
  void pairs_of_decays() {
    std::fill_n(pairs_, chunk, T(0));  // Σ_{i ≥ t} of each j
    for (Index t = chunk - 1; t >= 0; --t) {
      for (Index i = t; i < n; i += chunk)
        transform_row<T>(
            pairs_, t, [](auto const& sum, auto const& a, auto const& b) { return xsimd::fma(a, b, sum); }, pairs_, dm_ + i * chunk,
            head_.m + i * chunk);
      dg_[t] = total_row<T>(pairs_, t);
    }
  }

  /// to += Σ_rows a∘b, of rows [d]; with one decay per head their sum.
  void add_products(T* to, T const* a, T const* b, Index rows) const {
    for (Index i = 0; i < rows; ++i, a += d, b += d) {
      if (x.decays == 1)
        *to += dot_row<T>(a, b, d);
      else
        transform_row<T>(
            to, d, [](auto const& sum, auto const& u, auto const& v) { return xsimd::fma(u, v, sum); }, to, a, b);
    }
  }

  /// dy and dk, which are the gradients of Y∘e^c and K∘e^{c_C − c}: back to those of Y and K, with what other blocks add. A factor that is
  /// a product of decays gives the logarithm of each of them its own gradient times itself: no differences of large sums.
  void through_decays(T const* state, T const* ds) {
    Index const size = x.decays, rows = head_.rows;
    auto const plus = [&](T* to, T const* added) {
      transform_row<T>(
          to, size, [](auto const& a, auto const& b) { return a + b; }, to, added);
    };
    std::fill_n(far_, size, T(0));  // what all decays of a block are given by the state and by other blocks
    for (Index i = 0; i < d; ++i) {
      Index const at = size > 1 ? i : 0;
      far_[at] += head_.before(head_.blocks)[at] * dot_row<T>(state + i * e, ds + i * e, e);
    }
    for (Index b = head_.blocks - 1; b >= 0; --b) {
      Index const s = b * rows;
      std::copy_n(far_, size, later_);
      add_products(later_, head_.keys_to(b + 1), dk_, s);
      head_.decay_rows(dk_, dk_, s, head_.whole(b), 0);
      head_.decay_rows(dk_ + s * d, dk_ + s * d, rows, head_.until + s * size, size);
      for (Index part = 0; part < n; part += chunk) {
        T *const dy = dy_ + (part + s) * d, *const scores = dm_ + (part + s) * chunk;
        if (s > 0) {
          T const* const yt = head_.yt + (part + s) * d;
          head_.decay_rows(dy, dy, rows, head_.before(b), 0);
          add_products(far_, yt, dy, rows);
          gemm<T>(s, d, rows, 1, {scores, chunk, true}, {yt, d}, 1, dk_, d);
          gemm<T>(rows, d, s, 1, {scores, chunk}, {head_.keys_to(b), d}, 1, dy, d);
        }
        head_.decay_rows(dy, dy, rows, head_.since + s * size, size);
      }
      std::copy_n(later_, size, sum_);
      for (Index t = s + rows - 1; t >= s; --t) {
        for (Index i = t; i < n; i += chunk) add_products(sum_, head_.y + i * d, dy_ + i * d, 1);
        plus(dg_ + t * size, sum_);
      }
      std::fill_n(sum_, size, T(0));
      for (Index t = s; t < s + rows; ++t) {
        plus(dg_ + t * size, sum_);
        add_products(sum_, head_.k + t * d, dk_ + t * d, 1);
      }
      if (head_.by_pair) x.erases ? gradients_by_pair<true>(s) : gradients_by_pair<false>(s);
    }
  }

  /// What the pairs in the block that begins at s add to dy, dk and dg.
  template <bool erases>
  void gradients_by_pair(Index s) {
    Index const last = s + linear_block - 1;
    each_batch<T>(d, [&](Index c, auto const& batch) {
      Lanes<T> keys[linear_block];  // k_j decayed to each reader
      for (Index j = s; j <= last; ++j) {
        T const *const of_query = dm_ + j, *const of_erase = dm_ + chunk * chunk + j;
        auto const add = [&](T* to, Lanes<T> const& a, Lanes<T> const& b) { batch.store(xsimd::fma(a, b, batch.load(to + c)), to + c); };
        Lanes<T> key = batch.load(head_.k + j * d + c), sum(T(0));
        for (Index i = j; i <= last; ++i) {
          if (i > j) key *= batch.load(head_.decay + i * d + c);
          keys[i - s] = key;
          add(dy_ + i * d, Lanes<T>(of_query[i * chunk]), key);
          if constexpr (erases) add(dy_ + (chunk + i) * d, Lanes<T>(of_erase[i * chunk]), key);
        }
        for (Index i = last; i >= j; --i) {
          sum = xsimd::fma(Lanes<T>(of_query[i * chunk]), batch.load(head_.y + i * d + c), sum);
          if constexpr (erases) sum = xsimd::fma(Lanes<T>(of_erase[i * chunk]), batch.load(head_.y + (chunk + i) * d + c), sum);
          if (i == j) break;
          add(dg_ + i * d, keys[i - s], sum);
          sum *= batch.load(head_.decay + i * d + c);
        }
        batch.store(batch.load(dk_ + j * d + c) + sum, dk_ + j * d + c);
      }
    });
  }

  LinearAttentionHead<T> head_;
  LinearExtents const& x;
  Index const d, e, n;
  HeadRows<T const> dcontext_;
  HeadRows<T> dquery_, dkey_, dvalue_, derase_, dlog_decay_;
  Tensor room_;
  T *dreads_, *dm_, *dy_, *dk_, *dw_, *dg_;  ///< of a chunk: see LinearAttentionHead
  T *far_, *later_, *sum_, *pairs_;          ///< [decays] and, last, [C]
};

/// f(b, h) for all heads of all sequences, on the pool. `products`: how many [chunk, d] · [d, e] a chunk takes.
template <class F>
void each_head(LinearExtents const& x, double products, F const& f) {
  double const product = 0.02 * static_cast<double>((x.width + 20) * x.value_width);
  parallel_each(x.batch * x.heads, products * product * static_cast<double>(x.length), [&](Index at) { f(at / x.heads, at % x.heads); });
}

/// One of the states [B, H, d, e], or zeros.
template <class T>
void copy_state(T const* states, Index at, Index size, T* to) {
  if (states != nullptr)
    std::copy_n(states + at * size, size, to);
  else
    std::fill_n(to, size, T(0));
}
template <class T>
T const* states_in(Tensor const& states) {
  return states.defined() ? states.data<T>().data() : nullptr;
}

}  // namespace

Index LinearExtents::states() const { return (length + linear_chunk - 1) / linear_chunk; }

template <class T>
void linear_forward(LinearExtents const& x, LinearInputs const& in, T* context, T* state, Tensor& kept) {
  Index const size = x.state_size();
  T* const all_kept = kept.defined() ? kept.mutable_data<T>().data() : nullptr;
  each_head(x, 5, [&](Index b, Index h) {
    Index const at = b * x.heads + h;
    LinearAttentionHead<T> head(x, in, b, h);
    HeadRows<T> const out(x, context, x.value_width, b, h);
    Tensor own = state == nullptr ? Tensor({size}, in.query.dtype()) : Tensor();
    T* const now = state != nullptr ? state + at * size : own.mutable_data<T>().data();
    copy_state(states_in<T>(in.state), at, size, now);
    for (Index c = 0; c < x.states(); ++c) {
      if (all_kept != nullptr) std::copy_n(now, size, all_kept + (at * x.states() + c) * size);
      head.load(c * linear_chunk);
      head.read(now, 0);
      out.store(head.first, head.count, head.contexts());
      head.write(now, now);
    }
  });
}

template <class T>
LinearInputs linear_backward(LinearExtents const& x, LinearInputs const& in, Tensor const& kept, T const* dcontext, T const* dstate) {
  auto const like = [](Tensor const& array) { return array.defined() ? Tensor(array.shape(), array.dtype()) : Tensor(); };
  LinearInputs g{like(in.query), like(in.key), like(in.value), like(in.erase), like(in.log_decay), like(in.state)};
  Index const size = x.state_size();
  T* const dstart = g.state.defined() ? g.state.mutable_data<T>().data() : nullptr;
  T const* const states = kept.data<T>().data();
  each_head(x, 14, [&](Index b, Index h) {
    Index const at = b * x.heads + h;
    LinearHeadBackward<T> head(x, in, g, dcontext, b, h);
    Tensor own = dstart == nullptr ? Tensor({size}, in.query.dtype()) : Tensor();
    T* const ds = dstart != nullptr ? dstart + at * size : own.mutable_data<T>().data();
    copy_state(dstate, at, size, ds);
    for (Index c = x.states() - 1; c >= 0; --c) head.step(c * linear_chunk, states + (at * x.states() + c) * size, ds);
  });
  return g;
}

template <class T>
void linear_steps(LinearExtents const& x, LinearInputs const& in, T* context, T* state) {
  Index const size = x.state_size(), d = x.width, e = x.value_width;
  each_head(x, 2, [&](Index b, Index h) {
    Tensor room({size + e + x.decays}, in.query.dtype());
    T *const w = room.mutable_data<T>().data(), *const decay = w + e;
    T* const s = state != nullptr ? state + (b * x.heads + h) * size : decay + x.decays;
    copy_state(states_in<T>(in.state), b * x.heads + h, size, s);
    HeadRows<T> const out(x, context, e, b, h);
    auto const query = rows_of<T>(x, in.query, d, b, h), key = rows_of<T>(x, in.key, d, b, h), value = rows_of<T>(x, in.value, e, b, h);
    auto const erase = rows_of<T>(x, in.erase, d, b, h), log_decay = rows_of<T>(x, in.log_decay, x.decays, b, h);
    auto const add = [e](T* to, T factor, T const* row) {
      Lanes<T> const f(factor);
      transform_row<T>(
          to, e, [&](auto const& sum, auto const& v) { return xsimd::fma(f, v, sum); }, to, row);
    };
    for (Index t = 0; t < x.length; ++t) {
      T* const o = out.row(t);
      std::fill_n(o, e, T(0));
      std::copy_n(value.row(t), e, w);
      if (x.decays > 0)
        transform_row<T>(
            decay, x.decays, [](auto const& g) { return exponential(g); }, log_decay.row(t));
      for (Index i = 0; i < d; ++i) {
        T* const row = s + i * e;
        if (x.decays > 0) scale_row<T>(row, row, e, decay + (x.decays > 1 ? i : 0), true);
        if (x.erases) add(w, -erase.row(t)[i], row);
        if (x.read_first) add(o, query.row(t)[i], row);
      }
      for (Index i = 0; i < d; ++i) {
        add(s + i * e, key.row(t)[i], w);
        if (!x.read_first) add(o, query.row(t)[i], s + i * e);
      }
    }
  });
}

template void linear_forward(LinearExtents const&, LinearInputs const&, float*, float*, Tensor&);
template void linear_forward(LinearExtents const&, LinearInputs const&, double*, double*, Tensor&);
template LinearInputs linear_backward(LinearExtents const&, LinearInputs const&, Tensor const&, float const*, float const*);
template LinearInputs linear_backward(LinearExtents const&, LinearInputs const&, Tensor const&, double const*, double const*);
template void linear_steps(LinearExtents const&, LinearInputs const&, float*, float*);
template void linear_steps(LinearExtents const&, LinearInputs const&, double*, double*);

}  // namespace heed::kernels
