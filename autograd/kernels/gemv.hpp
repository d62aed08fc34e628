#pragma once

#include <cstdint>

#include "autograd/kernels/rows.hpp"

/// A row times a matrix: what a product is where one token is decoded. It is as fast as the matrix can be read, which OpenBLAS's is not.
namespace heed::kernels {

/// c[j] = alpha · Σ_i f(a[i]) f(b[j, i]) + beta · c[j], for b [m, k] with a leading dimension. f: batch → batch. One row after the other: a
/// single stream comes from memory at twice the speed of four.
template <class T, class F>
void row_times_transposed(std::int64_t m, std::int64_t k, T alpha, T const* a, T const* b, std::int64_t leading, T beta, T* c, F const& f) {
  for (std::int64_t j = 0; j < m; ++j) {
    T const sum = sum_row<T>(
        k, [&](auto const& x, auto const& y) { return f(x) * f(y); }, a, b + j * leading);
    c[j] = alpha * sum + (beta == 0 ? T(0) : beta * c[j]);
  }
}

/// c[j] = alpha · Σ_i f(a[i]) f(b[i, j]) + beta · c[j], for b [k, m] with a leading dimension.
template <class T, class F>
void row_times(std::int64_t m, std::int64_t k, T alpha, T const* a, T const* b, std::int64_t leading, T beta, T* c, F const& f) {
  Lanes<T> const factor(alpha), old(beta);
  auto const mixed = [&](Lanes<T> const& sum, Lanes<T> const& before) { return beta == 0 ? factor * sum : factor * sum + old * before; };
  constexpr std::int64_t together = 4;  // batches of columns, each with an accumulator of its own
  constexpr std::int64_t step = together * lanes<T>;
  std::int64_t j = 0;
  for (; j + step <= m; j += step) {
    Lanes<T> sums[together] = {Lanes<T>(T(0)), Lanes<T>(T(0)), Lanes<T>(T(0)), Lanes<T>(T(0))};
    for (std::int64_t i = 0; i < k; ++i) {
      Lanes<T> const x = f(Lanes<T>(a[i]));
      T const* const row = b + i * leading + j;
      for (std::int64_t r = 0; r < together; ++r) sums[r] = xsimd::fma(x, f(Lanes<T>::load_unaligned(row + r * lanes<T>)), sums[r]);
    }
    for (std::int64_t r = 0; r < together; ++r) {
      T* const out = c + j + r * lanes<T>;
      mixed(sums[r], Lanes<T>::load_unaligned(out)).store_unaligned(out);
    }
  }
  for (; j < m; j += lanes<T>) {
    std::int64_t const count = std::min(lanes<T>, m - j);
    bool const whole = count == lanes<T>;
    auto const load = [&](T const* from) { return whole ? Lanes<T>::load_unaligned(from) : load_some<T>(from, count, T(0)); };
    Lanes<T> sum(T(0));
    for (std::int64_t i = 0; i < k; ++i) sum = xsimd::fma(f(Lanes<T>(a[i])), f(load(b + i * leading + j)), sum);
    Lanes<T> const result = mixed(sum, load(c + j));
    if (whole) {
      result.store_unaligned(c + j);
    } else {
      store_some<T>(result, c + j, count);
    }
  }
}

}  // namespace heed::kernels
