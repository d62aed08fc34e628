#pragma once

#include <xsimd/xsimd.hpp>

// The only place that includes xsimd: covers differences between versions 8 and 14. Version 8 computes float32 quotients and square roots
// on ARM from estimates, some ulp off and NaN for √∞, as needed on 32-bit processors; 64-bit ones have correctly rounding instructions.
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

namespace heed::kernels {

/// The sum of a batch's lanes: hadd() before version 9, reduce_add() since. The order depends on the version.
template <class T, class Architecture>
[[gnu::always_inline]] inline T lane_sum(xsimd::batch<T, Architecture> const& v) {
#if XSIMD_VERSION_MAJOR < 9
  return xsimd::hadd(v);
#else
  return xsimd::reduce_add(v);
#endif
}

/// The lesser and the greater of two numbers, the second one if either is NaN: x86's instructions, whose operands version 14 swapped.
/// (ARM's give NaN if either is NaN.)
template <class T, class Architecture>
[[gnu::always_inline]] inline xsimd::batch<T, Architecture> lesser(xsimd::batch<T, Architecture> const& a,
                                                                   xsimd::batch<T, Architecture> const& b) {
#if XSIMD_VERSION_MAJOR < 14
  return xsimd::min(a, b);
#else
  return xsimd::min(b, a);
#endif
}
template <class T, class Architecture>
[[gnu::always_inline]] inline xsimd::batch<T, Architecture> greater(xsimd::batch<T, Architecture> const& a,
                                                                    xsimd::batch<T, Architecture> const& b) {
#if XSIMD_VERSION_MAJOR < 14
  return xsimd::max(a, b);
#else
  return xsimd::max(b, a);
#endif
}

/// The bits of a batch as numbers of another type of the same size.
template <class To, class From, class Architecture>
[[gnu::always_inline]] inline xsimd::batch<To, Architecture> bits_as(xsimd::batch<From, Architecture> const& v) {
  static_assert(sizeof(To) == sizeof(From));
#if XSIMD_VERSION_MAJOR < 11
  return xsimd::bitwise_cast<xsimd::batch<To, Architecture>>(v);
#else
  return xsimd::bitwise_cast<To>(v);
#endif
}

}  // namespace heed::kernels
