#pragma once

#include <arm_neon.h>

#include "autograd/kernels/simd/four_lanes.hpp"

/// 64-bit ARM: four lanes.
namespace heed::kernels::native {

template <class T>
T largest(Lanes<T> const& v) {
  if constexpr (sizeof(T) == 4) {
    return vmaxvq_f32(v);
  } else {
    return vmaxvq_f64(v);
  }
}

/// The instruction's 8 bits, and a step of Newton's.
inline Lanes<float> reciprocal_estimate(Lanes<float> const& x) {
  float32x4_t const estimate = vrecpeq_f32(x);
  return vmulq_f32(estimate, vrecpsq_f32(x, estimate));
}

inline Words multiply_lower(Words const& a, std::uint32_t m) { return vmull_u32(vmovn_u64(a), vdup_n_u32(m)); }

inline void store_upper(Lanes<float> const& x, std::int64_t count, std::uint16_t* out) {
  if (count < lanes<float>) return portable::store_upper(x, count, out);
  vst1_u16(out, vshrn_n_u32(vreinterpretq_u32_f32(x), 16));
}

}  // namespace heed::kernels::native
