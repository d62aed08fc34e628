#pragma once

#include "autograd/index.hpp"
#include "autograd/kernels/rows.hpp"

/// A row times a matrix: the product of decoding one token. Limited by memory bandwidth, unlike OpenBLAS's.
namespace heed::kernels {

/// sums[r] = Σ_i f(a[i]) f(b[r · apart + i]), in an order that does not depend on `rows`. Memory is prefetched 2 KB ahead of each row (into
/// the next row where rows are short), because the processor's own prefetching stops at page boundaries.
template <Index rows, class T, class F>
void dot_rows(Index k, T const* a, T const* b, Index apart, T* sums, F const& f) {
  constexpr Index step = 2 * lanes<T>, line = 64 / sizeof(T), ahead = 2048 / sizeof(T);
  Lanes<T> even[rows], odd[rows];
  for (Index r = 0; r < rows; ++r) even[r] = odd[r] = Lanes<T>(T(0));
  Index i = 0;
  for (; i + step <= k; i += step) {
    Lanes<T> const x = f(Lanes<T>::load_unaligned(a + i)), y = f(Lanes<T>::load_unaligned(a + i + lanes<T>));
    for (Index r = 0; r < rows; ++r) {
      T const* const from = b + r * apart + i;
      for (Index next = ahead; next < ahead + step; next += line) __builtin_prefetch(from + next);
      even[r] = xsimd::fma(x, f(Lanes<T>::load_unaligned(from)), even[r]);
      odd[r] = xsimd::fma(y, f(Lanes<T>::load_unaligned(from + lanes<T>)), odd[r]);
    }
  }
  for (; i < k; i += lanes<T>) {
    Index const count = std::min(lanes<T>, k - i);
    Lanes<T> const x = f(load_some<T>(a + i, count, T(0)));
    for (Index r = 0; r < rows; ++r) even[r] = xsimd::fma(x, f(load_some<T>(b + r * apart + i, count, T(0))), even[r]);
  }
  for (Index r = 0; r < rows; ++r) sums[r] = lane_sum(even[r] + odd[r]);
}

/// c[j] = alpha · Σ_i f(a[i]) f(b[j, i]) + beta · c[j], for b [m, k] with a leading dimension. f: batch → batch. b is cut into `streams`
/// parts, and one row of each part is read at a time.
template <Index streams, class T, class F>
void row_times_streams(Index m, Index k, T alpha, T const* a, T const* b, Index leading, T beta, T* c, F const& f) {
  Index const part = m / streams;
  auto const put = [&](Index j, T sum) { c[j] = alpha * sum + (beta == 0 ? T(0) : beta * c[j]); };
  T sums[streams];
  for (Index j = 0; j < part; ++j) {
    dot_rows<streams>(k, a, b + j * leading, part * leading, sums, f);
    for (Index r = 0; r < streams; ++r) put(r * part + j, sums[r]);
  }
  for (Index j = part * streams; j < m; ++j) {
    dot_rows<1>(k, a, b + j * leading, 0, sums, f);
    put(j, sums[0]);
  }
}

/// The same, with the number of streams chosen by the matrix's size. From the third-level cache two streams are 1.3 times as fast as one,
/// and more are no faster; from memory eight are 1.1 to 1.15 times as fast as two, since the processor prefetches each stream.
template <class T, class F>
void row_times_transposed(Index m, Index k, T alpha, T const* a, T const* b, Index leading, T beta, T* c, F const& f) {
  constexpr Index large = 256 * 1024 / sizeof(T);
  if (m * k <= large) return row_times_streams<2>(m, k, alpha, a, b, leading, beta, c, f);
  constexpr Index streams = sizeof(Lanes<T>) == 64 ? 8 : 4;  // each with two sums in registers
  row_times_streams<streams>(m, k, alpha, a, b, leading, beta, c, f);
}

/// c[j] = alpha · Σ_i f(a[i]) f(b[i, j]) + beta · c[j], for b [k, m] with a leading dimension.
template <class T, class F>
void row_times(Index m, Index k, T alpha, T const* a, T const* b, Index leading, T beta, T* c, F const& f) {
  Lanes<T> const factor(alpha), old(beta);
  auto const mixed = [&](Lanes<T> const& sum, Lanes<T> const& before) {
    return beta == 0 ? factor * sum : xsimd::fma(old, before, factor * sum);
  };
  constexpr Index together = 4;  // batches of columns, each with its own accumulator
  constexpr Index step = together * lanes<T>;
  Index j = 0;
  for (; j + step <= m; j += step) {
    Lanes<T> sums[together] = {Lanes<T>(T(0)), Lanes<T>(T(0)), Lanes<T>(T(0)), Lanes<T>(T(0))};
    for (Index i = 0; i < k; ++i) {
      Lanes<T> const x = f(Lanes<T>(a[i]));
      T const* const row = b + i * leading + j;
      for (Index r = 0; r < together; ++r) sums[r] = xsimd::fma(x, f(Lanes<T>::load_unaligned(row + r * lanes<T>)), sums[r]);
    }
    for (Index r = 0; r < together; ++r) {
      T* const out = c + j + r * lanes<T>;
      mixed(sums[r], Lanes<T>::load_unaligned(out)).store_unaligned(out);
    }
  }
  for (; j < m; j += lanes<T>) {
    Index const count = std::min(lanes<T>, m - j);
    bool const whole = count == lanes<T>;
    auto const load = [&](T const* from) { return whole ? Lanes<T>::load_unaligned(from) : load_some<T>(from, count, T(0)); };
    Lanes<T> sum(T(0));
    for (Index i = 0; i < k; ++i) sum = xsimd::fma(f(Lanes<T>(a[i])), f(load(b + i * leading + j)), sum);
    Lanes<T> const result = mixed(sum, load(c + j));
    if (whole) {
      result.store_unaligned(c + j);
    } else {
      store_some<T>(result, c + j, count);
    }
  }
}

}  // namespace heed::kernels
