#pragma once

#include <cstdint>

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

#include "autograd/kernels/rows.hpp"

/// Pairs of bfloat16 numbers in 32-bit words, which are held in batches of float32.
namespace heed::kernels {

/// Each number rounded to bfloat16 (to nearest, ties to even), as float32 numbers whose lower half is 0; NaN stays NaN.
inline Lanes<float> rounded_to_bfloat16(Lanes<float> const& x) {
  using Bits = xsimd::batch<std::uint32_t>;
  auto const bits = bits_as<std::uint32_t>(x);
  auto const nearest = bits + Bits(0x7fff) + ((bits >> 16) & Bits(1)), quiet_nan = bits | Bits(0x400000);
  auto const upper = [](Bits const& b) { return bits_as<float>(b & Bits(0xffff0000)); };
  return xsimd::select(xsimd::isnan(x), upper(quiet_nan), upper(nearest));
}

using WordBatch = Lanes<float>;

#ifdef __AVX512BF16__

/// Words of pairs: lower[i] rounded to bfloat16 in the lower half of word i, upper[i] in the upper. Here and below subnormal numbers are 0.
inline WordBatch interleaved(WordBatch const& lower, WordBatch const& upper) {
  alignas(64) static constexpr std::uint16_t by_turns[] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                           8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  __m512bh const both = _mm512_cvtne2ps_pbh(upper, lower);
  return _mm512_castsi512_ps(_mm512_permutexvar_epi16(_mm512_load_si512(by_turns), reinterpret_cast<__m512i const&>(both)));
}

/// The numbers of `first` as pairs, then those of `second`.
inline WordBatch pairs_of(WordBatch const& first, WordBatch const& second) {
  __m512bh const both = _mm512_cvtne2ps_pbh(second, first);
  return reinterpret_cast<__m512 const&>(both);
}

/// sum + Σ of the products of two words' halves.
inline WordBatch dot_pairs(WordBatch const& a, WordBatch const& b, WordBatch const& sum) {
  __m512 const x = a, y = b;
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh const&>(x), reinterpret_cast<__m512bh const&>(y));
}

#endif

}  // namespace heed::kernels
