#pragma once

#include <immintrin.h>

#include "autograd/index.hpp"
#include "autograd/kernels/simd/portable.hpp"

/// AVX-512: sixteen lanes, with masks, so that a tail costs no more than a whole batch.
namespace heed::kernels::native {

inline __mmask16 first_lanes(Index count) { return static_cast<__mmask16>((1U << count) - 1); }

template <class T>
Lanes<T> load_some(T const* x, Index count, T fill) {
  if constexpr (sizeof(T) == 4) {
    return _mm512_mask_loadu_ps(Lanes<T>(fill), first_lanes(count), x);
  } else {
    return _mm512_mask_loadu_pd(Lanes<T>(fill), static_cast<__mmask8>(first_lanes(count)), x);
  }
}

template <class T>
Lanes<T> keep_some(Lanes<T> const& v, Index count) {
  if constexpr (sizeof(T) == 4) {
    return _mm512_maskz_mov_ps(first_lanes(count), v);
  } else {
    return _mm512_maskz_mov_pd(static_cast<__mmask8>(first_lanes(count)), v);
  }
}

template <class T>
void store_some(Lanes<T> const& v, T* out, Index count) {
  if constexpr (sizeof(T) == 4) {
    _mm512_mask_storeu_ps(out, first_lanes(count), v);
  } else {
    _mm512_mask_storeu_pd(out, static_cast<__mmask8>(first_lanes(count)), v);
  }
}

template <class T>
T largest(Lanes<T> const& v) {
  if constexpr (sizeof(T) == 4) {
    return _mm512_reduce_max_ps(v);
  } else {
    return _mm512_reduce_max_pd(v);
  }
}

[[gnu::always_inline]] inline Lanes<float> scaled_by_power(Lanes<float> const& y, Lanes<float> const& n, Lanes<float> const& x,
                                                           float min_x) {
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, Lanes<float>(min_x), _CMP_NLT_UQ), y, n);
}

[[gnu::always_inline]] inline Lanes<float> scaled_by_small_power(Lanes<float> const& y, Lanes<float> const& n, Lanes<float> const& x,
                                                                 float min_x) {
  return scaled_by_power(y, n, x, min_x);
}

inline Lanes<float> reciprocal_estimate(Lanes<float> const& x) { return xsimd::reciprocal(x); }  // 14 bits

inline Words multiply_lower(Words const& a, std::uint32_t m) { return _mm512_mul_epu32(a, Words(m)); }

/// First [4, 4] in each quarter of the registers, then the quarters.
inline void transpose(float const* x, Index leading, float* out, Index leading_out) {
  __m512 quarters[4][4];  // column 4i + q of rows 4j … 4j + 3 is quarter i of [q][j]
  for (Index j = 0; j < 4; ++j) {
    auto const row = [&](Index r) { return _mm512_loadu_ps(x + (4 * j + r) * leading); };
    __m512 const a = row(0), b = row(1), c = row(2), d = row(3);
    __m512 const ab = _mm512_unpacklo_ps(a, b), cd = _mm512_unpacklo_ps(c, d);
    __m512 const ab_high = _mm512_unpackhi_ps(a, b), cd_high = _mm512_unpackhi_ps(c, d);
    quarters[0][j] = _mm512_shuffle_ps(ab, cd, 0x44);
    quarters[1][j] = _mm512_shuffle_ps(ab, cd, 0xee);
    quarters[2][j] = _mm512_shuffle_ps(ab_high, cd_high, 0x44);
    quarters[3][j] = _mm512_shuffle_ps(ab_high, cd_high, 0xee);
  }
  for (Index q = 0; q < 4; ++q) {
    auto const even = [](__m512 const& a, __m512 const& b) { return _mm512_shuffle_f32x4(a, b, 0x88); };
    auto const odd = [](__m512 const& a, __m512 const& b) { return _mm512_shuffle_f32x4(a, b, 0xdd); };
    auto const store = [&](Index i, __m512 const& column) { _mm512_store_ps(out + (4 * i + q) * leading_out, column); };
    auto const& t = quarters[q];
    __m512 const even_low = even(t[0], t[1]), even_high = even(t[2], t[3]), odd_low = odd(t[0], t[1]), odd_high = odd(t[2], t[3]);
    store(0, even(even_low, even_high));
    store(1, even(odd_low, odd_high));
    store(2, odd(even_low, even_high));
    store(3, odd(odd_low, odd_high));
  }
}

}  // namespace heed::kernels::native
