#pragma once

#include <emmintrin.h>

#include "autograd/kernels/simd/four_lanes.hpp"

/// Any x86-64 processor: four lanes, no fused multiply-add.
namespace heed::kernels::native {

inline Lanes<float> reciprocal_estimate(Lanes<float> const& x) { return xsimd::reciprocal(x); }  // 12 bits

inline Words multiply_lower(Words const& a, std::uint32_t m) { return _mm_mul_epu32(a, Words(m)); }

}  // namespace heed::kernels::native
