#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "autograd/index.hpp"
#include "autograd/kernels/simd/xsimd.hpp"

namespace heed::kernels {

/// A batch that fills a register, and its number of lanes.
template <class T>
using Lanes = xsimd::batch<T>;
template <class T>
inline constexpr Index lanes = static_cast<Index>(xsimd::batch<T>::size);

using Words = xsimd::batch<std::uint64_t>;

}  // namespace heed::kernels

/// Portable forms, correct on every processor; the functions are documented here.
namespace heed::kernels::portable {

/// x[0 … count − 1], and `fill` in the other lanes; 0 ≤ count ≤ lanes. Nothing beyond x[count − 1] is read.
template <class T>
Lanes<T> load_some(T const* x, Index count, T fill) {
  alignas(64) T buffer[Lanes<T>::size];
  std::fill(std::copy_n(x, count, buffer), buffer + lanes<T>, fill);
  return Lanes<T>::load_aligned(buffer);
}

/// The first `count` lanes of v, and 0 in the others.
template <class T>
Lanes<T> keep_some(Lanes<T> const& v, Index count) {
  alignas(64) T buffer[Lanes<T>::size];
  v.store_aligned(buffer);
  return portable::load_some<T>(buffer, count, T(0));
}

/// Writes the first `count` lanes of v to out[0 … count − 1], and nothing else.
template <class T>
void store_some(Lanes<T> const& v, T* out, Index count) {
  alignas(64) T buffer[Lanes<T>::size];
  v.store_aligned(buffer);
  std::copy_n(buffer, count, out);
}

/// The largest element of a batch without NaN.
template <class T>
T largest(Lanes<T> const& v) {
  alignas(64) T buffer[Lanes<T>::size];
  v.store_aligned(buffer);
  return *std::max_element(buffer, buffer + lanes<T>);
}

/// y · 2ⁿ, rounded once, where x ≥ min_x or x is NaN, else 0; for whole n from −150 to 128 and 0.5 ≤ y ≤ 2 (any n where x < min_x or y is
/// NaN).
[[gnu::always_inline]] inline Lanes<float> scaled_by_power(Lanes<float> const& y, Lanes<float> const& n, Lanes<float> const& x,
                                                           float min_x) {
  using Bits = xsimd::batch<std::int32_t>;  // in two steps, since 2¹²⁸ is not a float32 number
  Bits const whole = xsimd::to_int(n), half = whole >> 1;
  auto const power = [](Bits const& exponent) { return bits_as<float>((exponent + Bits(127)) << 23); };
  return xsimd::select(x < Lanes<float>(min_x), Lanes<float>(0.0F), y * power(half) * power(whole - half));
}

/// The same for n from −126 to 127 where x ≥ min_x.
[[gnu::always_inline]] inline Lanes<float> scaled_by_small_power(Lanes<float> const& y, Lanes<float> const& n, Lanes<float> const& x,
                                                                 float min_x) {
  using Bits = xsimd::batch<std::int32_t>;
  Lanes<float> const power = bits_as<float>((xsimd::to_int(n) + Bits(127)) << 23);
  return xsimd::select(x < Lanes<float>(min_x), Lanes<float>(0.0F), y * power);
}

/// 1/x to 11 bits or more, for normal numbers x ≥ 1 whose reciprocal is normal.
inline Lanes<float> reciprocal_estimate(Lanes<float> const& x) { return Lanes<float>(1.0F) / x; }

/// The 64-bit products of the lower 32 bits of each word with m.
inline Words multiply_lower(Words const& a, std::uint32_t m) {
  alignas(64) std::uint64_t words[Words::size];
  a.store_aligned(words);
  for (std::uint64_t& word : words) word = (word & 0xffffffff) * m;
  return Words::load_aligned(words);
}

/// out[i, j] = x[j, i] for a square of n rows, both with leading dimensions; by way of a buffer, so that whole rows are read and written.
template <Index n, class T>
void transpose_square(T const* x, Index leading, T* out, Index leading_out) {
  alignas(64) T columns[n][n];
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < n; ++i) columns[i][j] = x[j * leading + i];
  }
  for (Index i = 0; i < n; ++i) std::memcpy(out + i * leading_out, columns[i], sizeof columns[i]);
}

/// The same for a square with as many rows as a batch has lanes; the rows of `out` are aligned as batches are.
inline void transpose(float const* x, Index leading, float* out, Index leading_out) {
  transpose_square<lanes<float>>(x, leading, out, leading_out);
}

}  // namespace heed::kernels::portable
