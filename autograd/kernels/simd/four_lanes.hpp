#pragma once

#if defined(__aarch64__)
#include <arm_neon.h>
#else
#include <emmintrin.h>
#endif

#include "autograd/index.hpp"
#include "autograd/kernels/simd/portable.hpp"

/// Four lanes: 64-bit ARM, and baseline x86-64, which has no fused multiply-add.
namespace heed::kernels::native {

inline void transpose(float const* x, Index leading, float* out, Index leading_out) {
  using Batch = Lanes<float>;
  auto const row = [&](Index r) { return Batch::load_unaligned(x + r * leading); };
  auto const store = [&](Index i, Batch const& column) { column.store_aligned(out + i * leading_out); };
  Batch const a = row(0), b = row(1), c = row(2), d = row(3);
  Batch const ac = xsimd::zip_lo(a, c), bd = xsimd::zip_lo(b, d);  // a0 c0 a1 c1, b0 d0 b1 d1
  Batch const ac_high = xsimd::zip_hi(a, c), bd_high = xsimd::zip_hi(b, d);
  store(0, xsimd::zip_lo(ac, bd));
  store(1, xsimd::zip_hi(ac, bd));
  store(2, xsimd::zip_lo(ac_high, bd_high));
  store(3, xsimd::zip_hi(ac_high, bd_high));
}

#if defined(__aarch64__)

template <class T>
T largest(Lanes<T> const& v) {
  if constexpr (sizeof(T) == 4) {
    return vmaxvq_f32(v);
  } else {
    return vmaxvq_f64(v);
  }
}

/// The instruction's 8 bits, refined by one Newton step.
inline Lanes<float> reciprocal_estimate(Lanes<float> const& x) {
  float32x4_t const estimate = vrecpeq_f32(x);
  return vmulq_f32(estimate, vrecpsq_f32(x, estimate));
}

inline Words multiply_lower(Words const& a, std::uint32_t m) { return vmull_u32(vmovn_u64(a), vdup_n_u32(m)); }

#else

inline Lanes<float> reciprocal_estimate(Lanes<float> const& x) { return xsimd::reciprocal(x); }  // 12 bits
inline Words multiply_lower(Words const& a, std::uint32_t m) { return _mm_mul_epu32(a, Words(m)); }

#endif

}  // namespace heed::kernels::native
