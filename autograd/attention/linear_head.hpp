#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "autograd/attention/linear_kernel.hpp"
#include "autograd/kernels/triangular.hpp"

/// A chunk of C tokens of one head of linear attention: what forward and backward have in common. With S the state before the chunk, c the
/// sum of its decays g up to a token, Γ_ij = e^{c_i − c_j}, and readers Y, the queries and, below them, the keys that erase:
///
///   scores of readers and keys  M_ij = Σ_d y_id k_jd Γ_ijd, masked: P of the queries, A of the erasing keys
///   B = (Y∘e^c) S,  W = (I + A)⁻¹ (V − B_A),  O = B_P + P W,  S_C = e^{c_C}∘S + (K∘e^{c_C − c})ᵀ W
///
/// A chunk's decays are products of the tokens' own, never quotients of cumulated ones: nothing overflows, and a strong decay leaves those
/// around it as they are. With a decay per entry of the keys, M consists of blocks: products of readers decayed from their block's start
/// and keys decayed to it, and, on the diagonal, pair by pair. Zero rows pad the last chunk: all products have one shape.
namespace heed::kernels {

/// Rows of a block.
inline constexpr Index linear_block = 16;

/// Products of decays below this are 0: what they multiply would be subnormal, which is a hundred times slower.
template <class T>
inline constexpr T negligible = std::is_same_v<T, float> ? T(1e-30F) : T(1e-290);

/// out = a · b, decays; b has n elements or one.
template <class T>
void multiply_decays(T* out, T const* a, T const* b, Index n, bool one) {
  Lanes<T> const least(negligible<T>), zero(T(0)), factor(*b);
  auto const product = [&](auto const& u, auto const& v) {
    auto const y = u * v;
    return xsimd::select(y < least, zero, y);
  };
  if (one)
    transform_row<T>(
        out, n, [&](auto const& u) { return product(u, factor); }, a);
  else
    transform_row<T>(out, n, product, a, b);
}
/// out = x · factors, of which there are n or one.
template <class T>
void scale_row(T* out, T const* x, Index n, T const* factors, bool one) {
  Lanes<T> const factor(*factors);
  if (one)
    transform_row<T>(
        out, n, [&](auto const& v) { return v * factor; }, x);
  else
    transform_row<T>(
        out, n, [](auto const& v, auto const& f) { return v * f; }, x, factors);
}

/// One head's rows of an array [B, T, H·n]; none if it is undefined.
template <class T>
class HeadRows {
 public:
  HeadRows(LinearExtents const& x, T* array, Index size, Index b, Index h)
      : first_(array != nullptr ? array + (b * x.length * x.heads + h) * size : nullptr), size_(size), stride_(x.heads * size) {}

  T* row(Index t) const { return first_ + t * stride_; }
  /// Rows t … t + count − 1, and zeros up to a chunk.
  void load(Index t, Index count, std::remove_const_t<T>* to) const {
    for (Index i = 0; i < count; ++i) std::copy_n(row(t + i), size_, to + i * size_);
    std::fill_n(to + count * size_, (linear_chunk - count) * size_, T(0));
  }
  void store(Index t, Index count, T const* from) const {
    for (Index i = 0; first_ != nullptr && i < count; ++i) std::copy_n(from + i * size_, size_, row(t + i));
  }

 private:
  T* first_;
  Index size_, stride_;
};
template <class T>
HeadRows<T const> rows_of(LinearExtents const& x, Tensor const& array, Index size, Index b, Index h) {
  return {x, array.defined() ? array.data<T>().data() : nullptr, size, b, h};
}
template <class T>
HeadRows<T> rows_of(LinearExtents const& x, Tensor& array, Index size, Index b, Index h) {
  return {x, array.defined() ? array.mutable_data<T>().data() : nullptr, size, b, h};
}

template <class T>
class LinearAttentionHead {
 public:
  static constexpr Index chunk = linear_chunk;

  LinearAttentionHead(LinearExtents const& extents, LinearInputs const& in, Index b, Index h)
      : x(extents),
        by_pair(x.decays > 1),
        d(x.width),
        e(x.value_width),
        n(x.erases ? 2 * chunk : chunk),
        rows(by_pair ? linear_block : chunk),
        blocks(chunk / rows),
        query_(rows_of<T>(x, in.query, d, b, h)),
        key_(rows_of<T>(x, in.key, d, b, h)),
        value_(rows_of<T>(x, in.value, e, b, h)),
        erase_(rows_of<T>(x, in.erase, d, b, h)),
        log_decay_(rows_of<T>(x, in.log_decay, x.decays, b, h)),
        room_({n * (3 * d + e + chunk) + chunk * (2 * d + e + chunk) + rows * d * blocks * (blocks + 1) / 2 +
               (3 * chunk + blocks + 1) * x.decays + arrays * line},
              in.query.dtype()),
        next_(room_.mutable_data<T>().data()) {
    y = yt = yc = take(n * d), k = keys_ = take(chunk * d), m = take(n * chunk), w = take(chunk * e), reads = take(n * e);
    if (x.decays == 0) return;
    yt = yc = take(n * d), keys_ = take(rows * d * blocks * (blocks + 1) / 2), before_ = take((blocks + 1) * x.decays);
    decay = take(chunk * x.decays), since = take(chunk * x.decays), until = take(chunk * x.decays);
    if (by_pair)
      yc = take(n * d), key_of_pair_ = take(d);
    else
      between_ = take(chunk * chunk);
  }

  /// The chunk that begins at a token: its inputs, decays and scores.
  void load(Index token) {
    first = token, count = std::min(chunk, x.length - first);
    query_.load(first, count, y);
    if (x.erases) erase_.load(first, count, y + chunk * d);
    key_.load(first, count, k);
    value_.load(first, count, w);
    if (x.decays > 0) decays();
    if (by_pair) {
      std::fill_n(m, n * chunk, T(0));
      for (Index b = 0; b < blocks; ++b) x.erases ? scores_of_block<true>(b) : scores_of_block<false>(b);
    } else {
      gemm<T>(n, chunk, d, 1, {y, d}, {k, d, true}, 0, m, chunk);
      mask(m);
    }
  }

  /// B of the readers from `from` on, and W.
  void read(T const* state, Index from) {
    if (from < n) gemm<T>(n - from, e, d, 1, {yc + from * d, d}, {state, e}, 0, reads + from * e, e);
    if (!x.erases) return;
    T const *const values = w, *const erased = reads + chunk * e;
    transform_row<T>(
        w, chunk * e, [](auto const& v, auto const& b) { return v - b; }, values, erased);
    solve_unit_lower<T>(chunk, e, m + chunk * chunk, chunk, w, e, false);
  }
  /// O, in the place of B_P.
  T const* contexts() {
    gemm<T>(chunk, e, chunk, 1, {m, chunk}, {w, e}, 1, reads, e);
    return reads;
  }
  /// S_C, which may take the place of S.
  void write(T const* state, T* after) const {
    decay_state(after, state);
    gemm<T>(d, e, chunk, 1, {keys_to(blocks), d, true}, {w, e}, 1, after, e);
  }
  /// e^{c_C}∘x, x [d, e].
  void decay_state(T* out, T const* in) const {
    for (Index i = 0; x.decays > 0 && i < d; ++i) scale_row(out + i * e, in + i * e, e, before(blocks) + (by_pair ? i : 0), true);
    if (x.decays == 0 && out != in) std::copy_n(in, d * e, out);
  }

  /// What a reader does not see becomes 0; the rest is multiplied by a head's decays.
  void mask(T* scores) const {
    for (Index i = 0; i < n; ++i) {
      Index const at = i % chunk, seen = i < chunk && !x.read_first ? at + 1 : at;
      T* const row = scores + i * chunk;
      if (between_ != nullptr) scale_row<T>(row, row, seen, between_ + at * chunk, false);
      std::fill(row + seen, row + chunk, T(0));
    }
  }

  /// count rows [d] of `in` times the factors of each row, `apart` apart.
  void decay_rows(T* out, T const* in, Index size, T const* factors, Index apart) const {
    for (Index i = 0; i < size; ++i) scale_row<T>(out + i * d, in + i * d, d, factors + i * apart, !by_pair);
  }
  /// The keys before block b, decayed to its start [b · rows, d]; those of the chunk to its end.
  T* keys_to(Index b) const { return keys_ + (x.decays > 0 ? rows * d * b * (b - 1) / 2 : 0); }
  /// The decay from the chunk's start to that of block b.
  T* before(Index b) const { return before_ + b * x.decays; }
  /// The decay within block b.
  T const* whole(Index b) const { return since + ((b + 1) * rows - 1) * x.decays; }

  LinearExtents const& x;
  bool const by_pair;                                      ///< a decay per entry of the keys
  Index const d, e, n;                                     ///< n: readers
  Index const rows, blocks;                                ///< of a block, and in a chunk
  Index first = 0, count = 0;                              ///< tokens
  T *y, *k, *w, *m, *reads;                                ///< Y [n, d], K [C, d], V and then W [C, e], M [n, C], B and then O [n, e]
  T *yt, *yc;                                              ///< Y decayed from its block's start, and Y∘e^c
  T *decay = nullptr, *since = nullptr, *until = nullptr;  ///< [C, decays]: of a token; from its block's start to it; after it to the end

 private:
  static constexpr Index arrays = 16, line = 16;  // at most; numbers of a cache line
  T* take(Index size) { return std::exchange(next_, next_ + (size + line - 1) / line * line); }

  void decays() {
    Index const size = x.decays;
    log_decay_.load(first, count, decay);
    transform_row<T>(
        decay, chunk * size, [](auto const& g) { return exponential(g); }, decay);
    std::fill_n(before(0), size, T(1));
    for (Index b = 0; b < blocks; ++b) {
      Index const s = b * rows, last = s + rows - 1;
      std::copy_n(decay + s * size, size, since + s * size);
      for (Index i = s + 1; i <= last; ++i) multiply_decays<T>(since + i * size, since + (i - 1) * size, decay + i * size, size, false);
      std::fill_n(until + last * size, size, T(1));
      for (Index i = last; i > s; --i) multiply_decays<T>(until + (i - 1) * size, until + i * size, decay + i * size, size, false);
      multiply_decays<T>(before(b + 1), before(b), whole(b), size, false);
      decay_rows(keys_to(b + 1), keys_to(b), s, whole(b), 0);
      decay_rows(keys_to(b + 1) + s * d, k + s * d, rows, until + s * size, size);
    }
    for (Index part = 0; part < n; part += chunk) decay_rows(yt + part * d, y + part * d, chunk, since, size);
    if (by_pair) return;
    for (Index i = 0; i < chunk; ++i) {
      if (i > 0) multiply_decays<T>(between_ + i * chunk, between_ + (i - 1) * chunk, decay + i, i, true);
      between_[i * chunk + i] = 1;
    }
  }

  /// Y∘e^c and M of block b's readers.
  template <bool erases>
  void scores_of_block(Index b) {
    Index const s = b * rows;
    for (Index part = 0; part < n; part += chunk) {
      T const* const from = yt + (part + s) * d;
      decay_rows(yc + (part + s) * d, from, rows, before(b), 0);
      if (s > 0) gemm<T>(rows, s, d, 1, {from, d}, {keys_to(b), d, true}, 0, m + (part + s) * chunk, chunk);
    }
    for (Index j = s; j < s + rows; ++j) {
      std::copy_n(k + j * d, d, key_of_pair_);
      if (!x.read_first) m[j * chunk + j] = dot_row<T>(y + j * d, key_of_pair_, d);
      for (Index i = j + 1; i < s + rows; ++i) {
        Lanes<T> of_query(T(0)), of_erase(T(0));
        each_batch<T>(d, [&](Index c, auto const& batch) {
          auto const key = batch.load(key_of_pair_ + c) * batch.load(decay + i * d + c);
          batch.store(key, key_of_pair_ + c);
          of_query = xsimd::fma(batch.load(y + i * d + c), key, of_query);
          if constexpr (erases) of_erase = xsimd::fma(batch.load(y + (chunk + i) * d + c), key, of_erase);
        });
        m[i * chunk + j] = lane_sum(of_query);
        if constexpr (erases) m[(chunk + i) * chunk + j] = lane_sum(of_erase);
      }
    }
  }

  HeadRows<T const> query_, key_, value_, erase_, log_decay_;
  Tensor room_;
  T* next_;
  T *keys_, *before_ = nullptr;  ///< keys_to() of all blocks; before() of all blocks
  T* between_ = nullptr;         ///< Γ [C, C] of a decay per head
  T* key_of_pair_ = nullptr;     ///< [d]
};

}  // namespace heed::kernels
