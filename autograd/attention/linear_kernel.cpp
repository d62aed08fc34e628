// Linear attention in chunks, forward and backward, and token by token.
//
// Within a chunk of C tokens, from the state S before it, with Γ_ij the decay between tokens j and i and readers Y, the queries and, below
// them, the keys that erase:
//
//   scores of readers and keys  M_ij = Σ_d y_id k_jd Γ_ijd, masked: P of the queries, A of the erasing keys
//   B = (Y∘e^c) S,  W = (I + A)⁻¹ (V − B_A),  O = B_P + P W,  S_C = e^{c_C}∘S + (K∘e^{c_C − c})ᵀ W
//
// A chunk's decays are products of the tokens' own, never quotients of cumulated ones: nothing overflows, and nothing is lost where a
// strong decay precedes a weak one. With a decay per entry of the keys, M is computed in blocks of 16 rows: products of what is decayed to
// the block's start and from it, and pair by pair within the block. The last chunk is padded with zero rows.

#include "autograd/attention/linear_kernel.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/kernels/rows.hpp"
#include "autograd/kernels/triangular.hpp"
#include "autograd/parallel.hpp"

namespace heed::kernels {

namespace {

constexpr Index chunk = linear_chunk, block = 16;

/// Products of decays below this are 0: what they multiply would be subnormal, which is a hundred times slower.
template <class T>
constexpr T negligible = std::is_same_v<T, float> ? T(1e-30F) : T(1e-290);

/// out = a ∘ b, decays.
template <class T>
void multiply_decays(T* out, T const* a, T const* b, Index n) {
  Lanes<T> const least(negligible<T>), zero(T(0));
  transform_row<T>(
      out, n,
      [&](auto const& u, auto const& v) {
        auto const y = u * v;
        return xsimd::select(y < least, zero, y);
      },
      a, b);
}
/// out = x times one factor, or one for each element.
template <class T>
void scale_row(T* out, T const* x, Index n, T const* factors, Index count) {
  if (count == 1) {
    Lanes<T> const factor(*factors);
    transform_row<T>(
        out, n, [&](auto const& v) { return v * factor; }, x);
  } else {
    transform_row<T>(
        out, n, [](auto const& v, auto const& f) { return v * f; }, x, factors);
  }
}

/// Σ a b in double.
template <class T>
double dot_in_double(T const* a, T const* b, Index n) {
  constexpr Index parts = 16;
  double sums[parts] = {};
  Index i = 0;
  for (; i + parts <= n; i += parts)
    for (Index k = 0; k < parts; ++k) sums[k] += static_cast<double>(a[i + k]) * static_cast<double>(b[i + k]);
  for (; i < n; ++i) sums[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  for (Index k = parts / 2; k > 0; k /= 2)
    for (Index j = 0; j < k; ++j) sums[j] += sums[j + k];
  return sums[0];
}

/// One head's rows of an array [B, T, H·n].
template <class T>
class HeadRows {
 public:
  HeadRows(LinearExtents const& x, T* array, Index size, Index b, Index h)
      : first_(array != nullptr ? array + (b * x.length * x.heads + h) * size : nullptr), size_(size), stride_(x.heads * size) {}

  bool there() const { return first_ != nullptr; }
  T* row(Index t) const { return first_ + t * stride_; }
  /// Rows t … t + count − 1, and zeros up to a chunk.
  void load(Index t, Index count, std::remove_const_t<T>* to) const {
    for (Index i = 0; i < count; ++i) std::copy_n(row(t + i), size_, to + i * size_);
    std::fill_n(to + count * size_, (chunk - count) * size_, T(0));
  }
  void store(Index t, Index count, T const* from) const {
    for (Index i = 0; i < count; ++i) std::copy_n(from + i * size_, size_, row(t + i));
  }

 private:
  T* first_;
  Index size_, stride_;
};
/// Of an array of the inputs, or of its gradient; none if it is undefined.
template <class T>
HeadRows<T const> rows_of(LinearExtents const& x, Tensor const& array, Index size, Index b, Index h) {
  return {x, array.defined() ? array.data<T>().data() : nullptr, size, b, h};
}
template <class T>
HeadRows<T> rows_of(LinearExtents const& x, Tensor& array, Index size, Index b, Index h) {
  return {x, array.defined() ? array.mutable_data<T>().data() : nullptr, size, b, h};
}

/// One head: a chunk's arrays, and its states.
template <class T>
class LinearHead {
 public:
  LinearHead(LinearExtents const& extents, LinearInputs const& in, Index b, Index h)
      : x(extents),
        d(x.width),
        e(x.value_width),
        n(x.erases ? 2 * chunk : chunk),
        by_pair_(x.decays > 1),
        step_(by_pair_ ? block : chunk),
        query_(rows_of<T>(x, in.query, d, b, h)),
        key_(rows_of<T>(x, in.key, d, b, h)),
        value_(rows_of<T>(x, in.value, e, b, h)),
        erase_(rows_of<T>(x, in.erase, d, b, h)),
        log_decay_(rows_of<T>(x, in.log_decay, x.decays, b, h)),
        room_({n * (3 * d + e + chunk) + chunk * (2 * d + e + chunk) + (3 * chunk + 1) * x.decays + d + arrays * line}, in.query.dtype()) {
    next_ = room_.mutable_data<T>().data();
    y = take(n * d), k = take(chunk * d), m = take(n * chunk), w = take(chunk * e), reads = take(n * e);
    relative_ = yc = y, kc = k;
    if (x.decays == 0) return;
    relative_ = yc = take(n * d), kc = take(chunk * d);
    if (by_pair_) yc = take(n * d), row_ = take(d);
    decay_ = take(chunk * x.decays), since_ = take(chunk * x.decays), until_ = take(chunk * x.decays), before = take(x.decays);
    if (!by_pair_) between_ = take(chunk * chunk);
  }

  /// Tokens first … of the inputs, and their decays.
  void load(Index token) {
    first = token, count = std::min(chunk, x.length - first);
    query_.load(first, count, y);
    if (x.erases) erase_.load(first, count, y + chunk * d);
    key_.load(first, count, k);
    value_.load(first, count, w);
    if (x.decays == 0) return;
    log_decay_.load(first, count, decay_);
    decays();
  }

  /// M, and what is decayed: yc = Y∘e^c, kc = K∘e^{c_C − c}, before = e^{c_C}.
  void scores() {
    if (by_pair_) {
      std::fill_n(m, n * chunk, T(0));
    } else {
      gemm<T>(n, chunk, d, 1, {y, d}, {k, d, true}, 0, m, chunk);
      mask(m);
    }
    each_block([&](Index s) {
      if (!by_pair_) return;
      each_part([&](Index part) {
        for (Index i = part + s; i < part + s + block; ++i) scale_row(yc + i * d, relative_ + i * d, d, before, d);
        if (s > 0) gemm<T>(block, s, d, 1, {relative_ + (part + s) * d, d}, {kc, d, true}, 0, m + (part + s) * chunk, chunk);
      });
      scores_by_pair(s);
    });
  }

  /// B = (Y∘e^c) S of readers from `from` on; W.
  void read(T const* state, Index from) {
    if (from < n) gemm<T>(n - from, e, d, 1, {yc + from * d, d}, {state, e}, 0, reads + from * e, e);
    if (!x.erases) return;
    transform_row<T>(
        w, chunk * e, [](auto const& v, auto const& b) { return v - b; }, static_cast<T const*>(w),
        static_cast<T const*>(reads + chunk * e));
    solve_unit_lower<T>(chunk, e, m + chunk * chunk, chunk, w, e, false);
  }
  /// O, in the place of B_P.
  T const* contexts() {
    gemm<T>(chunk, e, chunk, 1, {m, chunk}, {w, e}, 1, reads, e);
    return reads;
  }
  /// e^{c_C}∘x, x [d, e].
  void decay_state(T* out, T const* state) const {
    for (Index i = 0; i < d; ++i) {
      if (x.decays > 0)
        scale_row(out + i * e, state + i * e, e, before + (by_pair_ ? i : 0), 1);
      else if (out != state)
        std::copy_n(state + i * e, e, out + i * e);
    }
  }
  /// S_C, which may take the place of S.
  void write(T const* state, T* next) const {
    decay_state(next, state);
    gemm<T>(d, e, chunk, 1, {kc, d, true}, {w, e}, 1, next, e);
  }

  /// What a reader does not see becomes 0; the rest is multiplied by a head's decays.
  void mask(T* scores) const {
    for (Index i = 0; i < n; ++i) {
      Index const at = i % chunk, seen = i < chunk && !x.read_first ? at + 1 : at;
      T* const row = scores + i * chunk;
      if (between_ != nullptr) scale_row<T>(row, row, seen, between_ + at * chunk, 0);
      std::fill(row + seen, row + chunk, T(0));
    }
  }

  /// f(first row of a block), with kc the keys before it decayed up to its start, and `before` the decay from the chunk's start.
  template <class F>
  void each_block(F const& f) {
    if (x.decays == 0) return;
    std::fill_n(before, x.decays, T(1));
    for (Index s = 0; s < chunk; s += step_) {
      f(s);
      T const* const whole = since_ + (s + step_ - 1) * x.decays;
      multiply_decays<T>(before, before, whole, x.decays);
      for (Index j = 0; j < s; ++j) scale_row<T>(kc + j * d, kc + j * d, d, whole, x.decays);
      for (Index j = s; j < s + step_; ++j) scale_row<T>(kc + j * d, k + j * d, d, until_ + j * x.decays, x.decays);
    }
  }
  /// f(0) for the queries, f(chunk) for the erasing keys: the first row of these readers.
  template <class F>
  void each_part(F const& f) const {
    for (Index part = 0; part < n; part += chunk) f(part);
  }

  LinearExtents const& x;
  Index const d, e, n;  ///< n: readers
  Index first = 0, count = 0;
  T *y, *k, *w;         ///< readers [n, d], keys [C, d]; values, then W [C, e]
  T *m, *reads;         ///< M [n, C]; B, then the contexts [n, e]
  T *yc, *kc;           ///< Y∘e^c, K∘e^{c_C − c}
  T* before = nullptr;  ///< e^{c_C}, after each_block()

 protected:
  static constexpr Index arrays = 14, line = 16;  // numbers of a cache line
  T* take(Index size) { return std::exchange(next_, next_ + (size + line - 1) / line * line); }

  void decays() {
    Index const size = x.decays;
    transform_row<T>(
        decay_, chunk * size, [](auto const& g) { return exponential(g); }, static_cast<T const*>(decay_));
    for (Index s = 0; s < chunk; s += step_) {
      std::copy_n(decay_ + s * size, size, since_ + s * size);
      for (Index i = s + 1; i < s + step_; ++i) multiply_decays<T>(since_ + i * size, since_ + (i - 1) * size, decay_ + i * size, size);
      std::fill_n(until_ + (s + step_ - 1) * size, size, T(1));
      for (Index i = s + step_ - 2; i >= s; --i)
        multiply_decays<T>(until_ + i * size, until_ + (i + 1) * size, decay_ + (i + 1) * size, size);
    }
    for (Index i = 0; i < n; ++i) scale_row<T>(relative_ + i * d, y + i * d, d, since_ + i % chunk * size, size);
    if (by_pair_) return;
    for (Index i = 0; i < chunk; ++i) {
      T* const row = between_ + i * chunk;
      Lanes<T> const decay(decay_[i]), least(negligible<T>), zero(T(0));
      transform_row<T>(
          row, i,
          [&](auto const& v) {
            auto const product = v * decay;
            return xsimd::select(product < least, zero, product);
          },
          static_cast<T const*>(row - (i > 0 ? chunk : 0)));
      row[i] = 1;
    }
  }

  /// M of the pairs in the block that begins at s.
  void scores_by_pair(Index s) {
    for (Index j = s; j < s + block; ++j) {
      std::copy_n(k + j * d, d, row_);
      if (!x.read_first) m[j * chunk + j] = dot_row<T>(y + j * d, row_, d);
      for (Index i = j + 1; i < s + block; ++i) {
        T const *const decay = decay_ + i * d, *const query = y + i * d, *const erase = y + (n - chunk + i) * d;
        Lanes<T> of_query(T(0)), of_erase(T(0));
        each_batch<T>(d, [&](Index c, auto const& batch) {
          auto const key = batch.load(row_ + c) * batch.load(decay + c);
          batch.store(key, row_ + c);
          of_query = xsimd::fma(batch.load(query + c), key, of_query);
          if (x.erases) of_erase = xsimd::fma(batch.load(erase + c), key, of_erase);
        });
        m[i * chunk + j] = lane_sum(of_query);
        if (x.erases) m[(chunk + i) * chunk + j] = lane_sum(of_erase);
      }
    }
  }

  bool const by_pair_;
  Index const step_;  ///< rows of a block
  HeadRows<T const> query_, key_, value_, erase_, log_decay_;
  Tensor room_;
  T* next_;
  T* relative_;  ///< Y decayed from its block's start [n, d]
  T *decay_ = nullptr, *since_ = nullptr,
    *until_ = nullptr;    ///< [C, decays]: of a token; from its block's start to it; after it to the end
  T* between_ = nullptr;  ///< Γ [C, C] of a decay per head
  T* row_ = nullptr;      ///< [d]
};

/// The gradient of one head, chunk by chunk from the last.
template <class T>
class LinearHeadBackward : LinearHead<T> {
  using Head = LinearHead<T>;
  using Head::x, Head::d, Head::e, Head::n, Head::y, Head::k, Head::w, Head::m, Head::yc, Head::kc;

 public:
  LinearHeadBackward(LinearExtents const& extents, LinearInputs const& in, LinearInputs& g, T const* dcontext, Index b, Index h)
      : Head(extents, in, b, h),
        dcontext_(x, dcontext, e, b, h),
        dquery_(rows_of<T>(x, g.query, d, b, h)),
        dkey_(rows_of<T>(x, g.key, d, b, h)),
        dvalue_(rows_of<T>(x, g.value, e, b, h)),
        derase_(rows_of<T>(x, g.erase, d, b, h)),
        dlog_decay_(rows_of<T>(x, g.log_decay, x.decays, b, h)),
        gradients_({n * (e + chunk + d) + chunk * (d + e + x.decays) + Head::arrays * Head::line}, in.query.dtype()),
        sums_(static_cast<std::size_t>(x.decays)) {
    this->next_ = gradients_.template mutable_data<T>().data();
    dreads_ = this->take(n * e), dm_ = this->take(n * chunk), dy_ = this->take(n * d), dk_ = this->take(chunk * d);
    dw_ = this->take(chunk * e), dg_ = this->take(chunk * x.decays);
  }

  /// The chunk that begins at token `first`, with the states before and after it; ds, the gradient of the latter, becomes that of the
  /// former.
  void step(Index token, T const* state, T const* after, T* ds) {
    this->load(token);
    this->scores();
    if (x.erases) this->read(state, chunk);
    dcontext_.load(token, this->count, dreads_);
    gemm<T>(chunk, e, d, 1, {kc, d}, {ds, e}, 0, dw_, e);
    gemm<T>(chunk, e, chunk, 1, {m, chunk, true}, {dreads_, e}, 1, dw_, e);
    if (x.erases) {
      solve_unit_lower<T>(chunk, e, m + chunk * chunk, chunk, dw_, e, true);
      transform_row<T>(
          dreads_ + chunk * e, chunk * e, [](auto const& v) { return -v; }, static_cast<T const*>(dw_));
    }
    gemm<T>(n, chunk, e, 1, {dreads_, e}, {w, e, true}, 0, dm_, chunk);
    this->mask(dm_);
    gemm<T>(n, d, e, 1, {dreads_, e}, {state, e, true}, 0, dy_, d);
    gemm<T>(chunk, d, e, 1, {w, e}, {ds, e, true}, 0, dk_, d);
    keys_in_chunk();
    readers_in_chunk();
    if (this->by_pair_)
      for (Index s = 0; s < chunk; s += block) gradients_by_pair(s);
    if (x.decays > 0) of_decays(after, ds);
    this->decay_state(ds, ds);
    gemm<T>(d, e, n, 1, {yc, d, true}, {dreads_, e}, 1, ds, e);
    store();
  }

 private:
  /// dk, which is K∘e^{c_C − c}'s gradient: back to K's, with what the chunk's readers add.
  void keys_in_chunk() {
    Index const size = x.decays, step = this->step_;
    for (Index s = chunk - step; size > 0 && s >= 0; s -= step) {
      for (Index j = s; j < s + step; ++j) scale_row<T>(dk_ + j * d, dk_ + j * d, d, this->until_ + j * size, size);
      if (s == 0) break;
      for (Index j = 0; j < s; ++j) scale_row<T>(dk_ + j * d, dk_ + j * d, d, this->since_ + (s + step - 1) * size, size);
      this->each_part([&](Index part) {
        gemm<T>(s, d, block, 1, {dm_ + (part + s) * chunk, chunk, true}, {this->relative_ + (part + s) * d, d}, 1, dk_, d);
      });
    }
    if (!this->by_pair_) gemm<T>(chunk, d, n, 1, {dm_, chunk, true}, {y, d}, 1, dk_, d);
  }

  /// dy, which is (Y∘e^c)'s gradient: back to Y's, with what the chunk's keys add.
  void readers_in_chunk() {
    this->each_block([&](Index s) {
      Index const size = x.decays;
      this->each_part([&](Index part) {
        T* const rows = dy_ + (part + s) * d;
        for (Index i = 0; s > 0 && i < this->step_; ++i) scale_row<T>(rows + i * d, rows + i * d, d, this->before, size);
        if (s > 0) gemm<T>(block, d, s, 1, {dm_ + (part + s) * chunk, chunk}, {kc, d}, 1, rows, d);
        for (Index i = 0; i < this->step_; ++i) scale_row<T>(rows + i * d, rows + i * d, d, this->since_ + (s + i) * size, size);
      });
    });
    if (!this->by_pair_) gemm<T>(n, d, chunk, 1, {dm_, chunk}, {k, d}, 1, dy_, d);
  }

  /// What the pairs in the block that begins at s add to dy and dk.
  void gradients_by_pair(Index s) {
    Index const last = s + block - 1, below = n - chunk;
    each_batch<T>(d, [&](Index c, auto const& batch) {
      for (Index j = s; j <= last; ++j) {
        Lanes<T> key = batch.load(k + j * d + c), sum(T(0));
        for (Index i = j; i <= last; ++i) {
          if (i > j) key *= batch.load(this->decay_ + i * d + c);
          for (Index part = 0; part <= below; part += chunk) {
            T* const to = dy_ + (part + i) * d + c;
            batch.store(xsimd::fma(Lanes<T>(dm_[(part + i) * chunk + j]), key, batch.load(to)), to);
          }
        }
        for (Index i = last; i >= j; --i) {
          if (i < last) sum *= batch.load(this->decay_ + (i + 1) * d + c);
          for (Index part = 0; part <= below; part += chunk)
            sum = xsimd::fma(Lanes<T>(dm_[(part + i) * chunk + j]), batch.load(y + (part + i) * d + c), sum);
        }
        batch.store(batch.load(dk_ + j * d + c) + sum, dk_ + j * d + c);
      }
    });
  }

  /// dg_t = Σ_{s ≥ t} (y·dy − k·dk)_s + Σ dS_C S_C: differences of large sums, in double.
  void of_decays(T const* after, T const* ds) {
    Index const size = x.decays;
    for (double& sum : sums_) sum = 0;
    for (Index i = 0; i < d; ++i) at(sums_, size > 1 ? i : 0) += dot_in_double(after + i * e, ds + i * e, e);
    for (Index t = chunk - 1; t >= 0; --t) {
      auto const add = [&](T const* a, T const* b, double sign) {
        if (size == 1) {
          sums_[0] += sign * dot_in_double(a, b, d);
        } else {
          double* const to = sums_.data();
          for (Index i = 0; i < d; ++i) to[i] += sign * (static_cast<double>(a[i]) * static_cast<double>(b[i]));
        }
      };
      this->each_part([&](Index part) { add(y + (part + t) * d, dy_ + (part + t) * d, 1); });
      add(k + t * d, dk_ + t * d, -1);
      std::ranges::transform(sums_, dg_ + t * size, [](double sum) { return static_cast<T>(sum); });
    }
  }

  void store() {
    dquery_.store(this->first, this->count, dy_);
    dkey_.store(this->first, this->count, dk_);
    dvalue_.store(this->first, this->count, dw_);
    if (x.erases) derase_.store(this->first, this->count, dy_ + chunk * d);
    if (x.decays > 0) dlog_decay_.store(this->first, this->count, dg_);
  }

  HeadRows<T const> dcontext_;
  HeadRows<T> dquery_, dkey_, dvalue_, derase_, dlog_decay_;
  Tensor gradients_;
  std::vector<double> sums_;
  T *dreads_, *dm_, *dy_, *dk_, *dw_, *dg_;  ///< of a chunk; dreads: B's, [dO; −dR]
};

/// f(b, h) for all heads of all sequences, on the pool. `products`: of chunks, per chunk.
template <class F>
void each_head(LinearExtents const& x, double products, F const& f) {
  double const product = 0.02 * static_cast<double>((x.width + 20) * x.value_width);
  parallel_for(
      x.batch * x.heads, products * product * static_cast<double>(x.length),
      [&](Index begin, Index end) {
        for (Index at = begin; at < end; ++at) f(at / x.heads, at % x.heads);
      },
      1, Cut::fine);
}

/// The state that a head begins with.
template <class T>
void first_state(LinearExtents const& x, Tensor const& states, Index head, T* to) {
  Index const size = x.state_size();
  if (states.defined())
    std::copy_n(states.data<T>().data() + head * size, size, to);
  else
    std::fill_n(to, size, T(0));
}

}  // namespace

Index LinearExtents::states() const { return (length + chunk - 1) / chunk + 1; }

template <class T>
void linear_forward(LinearExtents const& x, LinearInputs const& in, T* context, T* state, Tensor& kept) {
  Index const size = x.state_size();
  T* const all_kept = kept.defined() ? kept.mutable_data<T>().data() : nullptr;
  each_head(x, 5, [&](Index b, Index h) {
    Index const at = b * x.heads + h;
    LinearHead<T> head(x, in, b, h);
    HeadRows<T> const out(x, context, x.value_width, b, h);
    Tensor own = all_kept == nullptr && state == nullptr ? Tensor({size}, in.query.dtype()) : Tensor();
    T* now = all_kept != nullptr ? all_kept + at * x.states() * size : state != nullptr ? state + at * size : own.mutable_data<T>().data();
    first_state(x, in.state, at, now);
    for (Index first = 0; first < x.length; first += chunk) {
      head.load(first);
      head.scores();
      head.read(now, 0);
      out.store(first, head.count, head.contexts());
      T* const next = all_kept != nullptr ? now + size : now;
      head.write(now, next);
      now = next;
    }
    if (state != nullptr && now != state + at * size) std::copy_n(now, size, state + at * size);
  });
}

template <class T>
LinearInputs linear_backward(LinearExtents const& x, LinearInputs const& in, Tensor const& kept, T const* dcontext, T const* dstate) {
  auto const like = [](Tensor const& array) { return array.defined() ? Tensor(array.shape(), array.dtype()) : Tensor(); };
  LinearInputs g{like(in.query), like(in.key), like(in.value), like(in.erase), like(in.log_decay), like(in.state)};
  Index const size = x.state_size(), states = x.states();
  T* const dstart = g.state.defined() ? g.state.mutable_data<T>().data() : nullptr;
  each_head(x, 14, [&](Index b, Index h) {
    Index const at = b * x.heads + h;
    LinearHeadBackward<T> head(x, in, g, dcontext, b, h);
    Tensor ds({size}, in.query.dtype());
    T* const d = ds.mutable_data<T>().data();
    if (dstate != nullptr)
      std::copy_n(dstate + at * size, size, d);
    else
      std::fill_n(d, size, T(0));
    for (Index c = states - 2; c >= 0; --c) {
      T const* const before = kept.data<T>().data() + (at * states + c) * size;
      head.step(c * chunk, before, before + size, d);
    }
    if (dstart != nullptr) std::copy_n(d, size, dstart + at * size);
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
    first_state(x, in.state, b * x.heads + h, s);
    HeadRows<T> const out(x, context, e, b, h);
    auto const query = rows_of<T>(x, in.query, d, b, h), key = rows_of<T>(x, in.key, d, b, h), value = rows_of<T>(x, in.value, e, b, h);
    auto const erase = rows_of<T>(x, in.erase, d, b, h), log_decay = rows_of<T>(x, in.log_decay, x.decays, b, h);
    auto const add = [e](T* to, T factor, T const* row) {
      Lanes<T> const f(factor);
      transform_row<T>(
          to, e, [&](auto const& sum, auto const& v) { return xsimd::fma(f, v, sum); }, static_cast<T const*>(to), row);
    };
    for (Index t = 0; t < x.length; ++t) {
      T* const o = out.row(t);
      std::fill_n(o, e, T(0));
      std::copy_n(value.row(t), e, w);
      if (x.decays > 0)
        transform_row<T>(
            decay, x.decays, [](auto const& g) { return exponential(g); }, static_cast<T const*>(log_decay.row(t)));
      for (Index i = 0; i < d; ++i) {
        T* const row = s + i * e;
        if (x.decays > 0) scale_row<T>(row, row, e, decay + (x.decays > 1 ? i : 0), 1);
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
