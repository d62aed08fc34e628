#pragma once

#include <xsimd/xsimd.hpp>

// The one door to xsimd. Its version 8 makes float32's quotients and square roots on ARM from estimates, some units in the last place off
// and NaN for the root of infinity, as 32-bit processors need; 64-bit ones have instructions that round correctly.
#if defined(__aarch64__) && XSIMD_VERSION_MAJOR < 9

#include <arm_neon.h>

namespace xsimd {

template <>
inline batch<float, neon64>& batch<float, neon64>::operator/=(batch const& other) noexcept {
  return *this = vdivq_f32(*this, other);
}

template <>
inline batch<float, neon64> sqrt(batch<float, neon64> const& x) noexcept {
  return vsqrtq_f32(x);
}

}  // namespace xsimd

#endif
