#pragma once

#include <xsimd/xsimd.hpp>

// The one door to xsimd: what its versions from 8 to 14 have under other names or compute otherwise. Version 8 makes float32's quotients
// and square roots on ARM from estimates, some units in the last place off and NaN for the root of infinity, as 32-bit processors need;
// 64-bit ones have instructions that round correctly.
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

/// The sum of a batch's lanes: hadd() before version 9, reduce_add() since. The order of summing is the version's own.
template <class T, class Architecture>
[[gnu::always_inline]] inline T lane_sum(xsimd::batch<T, Architecture> const& v) {
#if XSIMD_VERSION_MAJOR < 9
  return xsimd::hadd(v);
#else
  return xsimd::reduce_add(v);
#endif
}

/// The lesser and the greater of two numbers, the second where one is NaN: x86's instructions, whose operands version 14 turned round.
/// (ARM's give NaN where either is.)
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
