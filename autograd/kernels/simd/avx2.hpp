#pragma once

#include <immintrin.h>

#include "autograd/index.hpp"
#include "autograd/kernels/simd/portable.hpp"

/// AVX2: eight lanes.
namespace heed::kernels::native {

/// All bits of the first `count` lanes.
template <class T>
__m256i first_lanes(Index count) {
  if constexpr (sizeof(T) == 4) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  } else {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
  }
}

template <class T>
Lanes<T> load_some(T const* x, Index count, T fill) {
  __m256i const mask = first_lanes<T>(count);
  if constexpr (sizeof(T) == 4) {
    return _mm256_blendv_ps(Lanes<T>(fill), _mm256_maskload_ps(x, mask), _mm256_castsi256_ps(mask));
  } else {
    return _mm256_blendv_pd(Lanes<T>(fill), _mm256_maskload_pd(x, mask), _mm256_castsi256_pd(mask));
  }
}

template <class T>
Lanes<T> keep_some(Lanes<T> const& v, Index count) {
  if constexpr (sizeof(T) == 4) {
    return _mm256_and_ps(v, _mm256_castsi256_ps(first_lanes<T>(count)));
  } else {
    return _mm256_and_pd(v, _mm256_castsi256_pd(first_lanes<T>(count)));
  }
}

/// Half by half: on AMD's processors a masked store takes a dozen cycles.
template <class T>
void store_some(Lanes<T> const& v, T* out, Index count) {
  if (count == lanes<T>) return v.store_unaligned(out);
  if constexpr (sizeof(T) == 4) {
    __m128 part = _mm256_castps256_ps128(v);
    if ((count & 4) != 0) {
      _mm_storeu_ps(out, part);
      part = _mm256_extractf128_ps(v, 1);
      out += 4;
    }
    if ((count & 2) != 0) {
      _mm_storel_pi(reinterpret_cast<__m64*>(out), part);
      part = _mm_movehl_ps(part, part);
      out += 2;
    }
    if ((count & 1) != 0) _mm_store_ss(out, part);
  } else {
    __m128d part = _mm256_castpd256_pd128(v);
    if ((count & 2) != 0) {
      _mm_storeu_pd(out, part);
      part = _mm256_extractf128_pd(v, 1);
      out += 2;
    }
    if ((count & 1) != 0) _mm_store_sd(out, part);
  }
}

template <class T>
T largest(Lanes<T> const& v) {
  if constexpr (sizeof(T) == 4) {
    __m128 const four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1)),
                 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  } else {
    __m128d const two = _mm_max_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_max_sd(two, _mm_unpackhi_pd(two, two)));
  }
}

inline Lanes<float> reciprocal_estimate(Lanes<float> const& x) { return xsimd::reciprocal(x); }  // 12 bits

inline Words multiply_lower(Words const& a, std::uint32_t m) { return _mm256_mul_epu32(a, Words(m)); }

/// First [4, 4] in each half of the registers, then the halves.
inline void transpose(float const* x, Index leading, float* out, Index leading_out) {
  __m256 halves[4][2];  // column 4i + q of rows 4j … 4j + 3 is half i of [q][j]
  for (Index j = 0; j < 2; ++j) {
    auto const row = [&](Index r) { return _mm256_loadu_ps(x + (4 * j + r) * leading); };
    __m256 const a = row(0), b = row(1), c = row(2), d = row(3);
    __m256 const ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d);
    __m256 const ab_high = _mm256_unpackhi_ps(a, b), cd_high = _mm256_unpackhi_ps(c, d);
    halves[0][j] = _mm256_shuffle_ps(ab, cd, 0x44);
    halves[1][j] = _mm256_shuffle_ps(ab, cd, 0xee);
    halves[2][j] = _mm256_shuffle_ps(ab_high, cd_high, 0x44);
    halves[3][j] = _mm256_shuffle_ps(ab_high, cd_high, 0xee);
  }
  for (Index q = 0; q < 4; ++q) {
    _mm256_store_ps(out + q * leading_out, _mm256_permute2f128_ps(halves[q][0], halves[q][1], 0x20));
    _mm256_store_ps(out + (4 + q) * leading_out, _mm256_permute2f128_ps(halves[q][0], halves[q][1], 0x31));
  }
}

}  // namespace heed::kernels::native
