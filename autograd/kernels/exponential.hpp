#pragma once

#include <xsimd/xsimd.hpp>

/// eˣ, which softmax, sigmoid and gelu spend most of their time on. Inlined whatever the compiler thinks: its constants then stay in
/// registers.
namespace heed::kernels {

template <class B>
[[gnu::always_inline]] inline B exponential(B const& x) {
  return xsimd::exp(x);
}

namespace exponent {

using Float32s = xsimd::batch<float>;
inline constexpr float least_exponent = -87.33F;  ///< e to this is about the smallest number that is not denormal

#ifdef __AVX512F__
[[gnu::always_inline]] inline Float32s nearest(Float32s const& x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/// c − ab.
[[gnu::always_inline]] inline Float32s less(Float32s const& c, Float32s const& a, float b) { return _mm512_fnmadd_ps(a, Float32s(b), c); }
/// y · 2ⁿ for whole n, from −126 to 128; 0 where x is less than least_exponent (but not where it is NaN).
[[gnu::always_inline]] inline Float32s scaled(Float32s const& y, Float32s const& n, Float32s const& x) {
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, Float32s(least_exponent), _CMP_NLT_UQ), y, n);
}
#else
[[gnu::always_inline]] inline Float32s nearest(Float32s const& x) { return xsimd::nearbyint(x); }
[[gnu::always_inline]] inline Float32s less(Float32s const& c, Float32s const& a, float b) { return xsimd::fnma(a, Float32s(b), c); }
[[gnu::always_inline]] inline Float32s scaled(Float32s const& y, Float32s const& n, Float32s const& x) {
  using Bits = xsimd::batch<std::int32_t>;  // in two halves, since 2¹²⁸ is no float32 number
  Bits const whole = xsimd::to_int(n), half = whole >> 1;
  auto const power = [](Bits const& exponent) { return xsimd::bitwise_cast<Float32s>((exponent + Bits(127)) << 23); };
  return xsimd::select(x < Float32s(least_exponent), Float32s(0.0F), y * power(half) * power(whole - half));
}
#endif

}  // namespace exponent

/// eˣ = 2ⁿ eʳ with r = x − n ln 2, |r| ≤ ln 2 / 2, ln 2 in two parts so that the first product is exact, and eʳ a polynomial that is 0.05
/// ulp from it. At most 1 ulp off (xsimd's: 1.5) between −87.33, below which it is 0 and not a denormal number, and the overflow to ∞; NaN
/// stays NaN. In two thirds of xsimd's time on AVX-512.
[[gnu::always_inline]] inline xsimd::batch<float> exponential(xsimd::batch<float> const& x) {
  using B = exponent::Float32s;
  B const in_range = xsimd::min(B(89.0F), x);  // the second where one is NaN
  B const n = exponent::nearest(in_range * B(1.44269504F));
  B const r = exponent::less(exponent::less(in_range, n, 0.693359375F), n, -2.12194440e-4F);
  B y(1.3814539e-3F);
  for (float const c : {8.3687454e-3F, 4.1668389e-2F, 1.6666521e-1F, 4.9999994e-1F, 1.0F, 1.0F}) y = xsimd::fma(y, r, B(c));
  return exponent::scaled(y, n, x);
}

}  // namespace heed::kernels
