#pragma once

#include "autograd/kernels/simd.hpp"

/// eˣ, which softmax, sigmoid and gelu spend most of their time on. Inlined whatever the compiler thinks: its constants then stay in
/// registers.
namespace heed::kernels {

template <class B>
[[gnu::always_inline]] inline B exponential(B const& x) {
  return xsimd::exp(x);
}

inline constexpr float least_exponent = -87.33F;  ///< e to this is about the smallest float32 number that is not denormal

/// eˣ = 2ⁿ eʳ with r = x − n ln 2, |r| ≤ ln 2 / 2, ln 2 in two parts so that the first product is exact, and eʳ a polynomial that is 0.05
/// ulp from it. At most 1 ulp off (1.1 without fused multiply-adds; xsimd's: 1.5) between `least`, below which it is 0, and the overflow to
/// ∞; NaN stays NaN. In two thirds of xsimd's time on AVX-512.
[[gnu::always_inline]] inline Lanes<float> exponential_from(Lanes<float> const& x, float least) {
  using B = Lanes<float>;
  B const in_range = lesser(B(89.0F), x);  // x where it is NaN
  B const n = xsimd::nearbyint(in_range * B(1.44269504F));
  B const r = xsimd::fnma(n, B(-2.12194440e-4F), xsimd::fnma(n, B(0.693359375F), in_range));
  B y(1.3814539e-3F);
  for (float const c : {8.3687454e-3F, 4.1668389e-2F, 1.6666521e-1F, 4.9999994e-1F, 1.0F, 1.0F}) y = xsimd::fma(y, r, B(c));
  return scaled_by_power(y, n, x, least);
}

/// The same without subnormal results, on which processors take a hundred times as long: 0 below −87.33.
[[gnu::always_inline]] inline Lanes<float> exponential(Lanes<float> const& x) { return exponential_from(x, least_exponent); }

}  // namespace heed::kernels
