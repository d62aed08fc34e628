#pragma once

#include <cstdint>

#include "autograd/kernels/rows.hpp"

/// The transpose of a square of batches, in registers.
namespace heed::kernels {

/// a0 b0 a1 b1 of every quarter (four numbers) of two batches, and a2 b2 a3 b3; the same for pairs of numbers; and the quarters themselves:
/// the even ones of a, then of b, and the odd ones.
struct Shuffles {
  using Batch = Lanes<float>;
#ifdef __AVX512F__
  static Batch low(Batch const& a, Batch const& b) { return _mm512_unpacklo_ps(a, b); }
  static Batch high(Batch const& a, Batch const& b) { return _mm512_unpackhi_ps(a, b); }
  static Batch low_pairs(Batch const& a, Batch const& b) { return _mm512_shuffle_ps(a, b, 0x44); }
  static Batch high_pairs(Batch const& a, Batch const& b) { return _mm512_shuffle_ps(a, b, 0xee); }
  static Batch even_quarters(Batch const& a, Batch const& b) { return _mm512_shuffle_f32x4(a, b, 0x88); }
  static Batch odd_quarters(Batch const& a, Batch const& b) { return _mm512_shuffle_f32x4(a, b, 0xdd); }
#else
  static Batch low(Batch const& a, Batch const& b) { return _mm256_unpacklo_ps(a, b); }
  static Batch high(Batch const& a, Batch const& b) { return _mm256_unpackhi_ps(a, b); }
  static Batch low_pairs(Batch const& a, Batch const& b) { return _mm256_shuffle_ps(a, b, 0x44); }
  static Batch high_pairs(Batch const& a, Batch const& b) { return _mm256_shuffle_ps(a, b, 0xee); }
  static Batch even_quarters(Batch const& a, Batch const& b) { return _mm256_permute2f128_ps(a, b, 0x20); }
  static Batch odd_quarters(Batch const& a, Batch const& b) { return _mm256_permute2f128_ps(a, b, 0x31); }
#endif
};

/// out[i, j] = x[j, i] of a square of as many rows as a batch has numbers, both with leading dimensions, out's rows aligned: first [4, 4]
/// in each quarter, then the quarters.
inline void transpose(float const* x, std::int64_t leading, float* out, std::int64_t leading_out) {
  using S = Shuffles;
  using Batch = Lanes<float>;
  constexpr std::int64_t L = lanes<float>;
  Batch quarters[4][L / 4];  // column 4i + q of rows 4j … 4j + 3 is quarter i of [q][j]
  for (std::int64_t j = 0; j < L / 4; ++j) {
    auto const row = [&](std::int64_t r) { return Batch::load_unaligned(x + (4 * j + r) * leading); };
    Batch const a = row(0), b = row(1), c = row(2), d = row(3);
    Batch const ab = S::low(a, b), cd = S::low(c, d), ab_high = S::high(a, b), cd_high = S::high(c, d);
    quarters[0][j] = S::low_pairs(ab, cd);
    quarters[1][j] = S::high_pairs(ab, cd);
    quarters[2][j] = S::low_pairs(ab_high, cd_high);
    quarters[3][j] = S::high_pairs(ab_high, cd_high);
  }
  for (std::int64_t q = 0; q < 4; ++q) {
    auto const store = [&](std::int64_t i, Batch const& column) { column.store_aligned(out + (4 * i + q) * leading_out); };
    auto const& t = quarters[q];
    Batch const even = S::even_quarters(t[0], t[1]), odd = S::odd_quarters(t[0], t[1]);
    if constexpr (L == 8) {
      store(0, even);
      store(1, odd);
    } else {
      Batch const more_even = S::even_quarters(t[2], t[L / 4 - 1]), more_odd = S::odd_quarters(t[2], t[L / 4 - 1]);
      store(0, S::even_quarters(even, more_even));
      store(1, S::even_quarters(odd, more_odd));
      store(2, S::odd_quarters(even, more_even));
      store(3, S::odd_quarters(odd, more_odd));
    }
  }
}

}  // namespace heed::kernels
