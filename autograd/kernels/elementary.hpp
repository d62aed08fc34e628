#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "autograd/kernels/simd.hpp"

/// Elementary functions, over the whole range of their type: xsimd's where accurate, otherwise corrected. Errors are in units of the last
/// place (ulp) of the exact result, subnormal results included, as measured by tests/autograd/elementary.cpp; xsimd's sqrt (0.5 ulp), log1p
/// (1), tanh (2), sin and cos (2) are used directly.
namespace heed::kernels {

/// eˣ, which dominates the time of softmax, sigmoid and gelu. Always inlined, so that its constants stay in registers.
template <class B>
[[gnu::always_inline]] inline B exponential(B const& x) {
  return xsimd::exp(x);
}

inline constexpr float min_exponent = -87.33F;  ///< exp of this is about the smallest normal float32 number

/// y = eʳ and n of eˣ = 2ⁿ eʳ.
struct PowerAndRest {
  Lanes<float> y, n;
};
[[gnu::always_inline]] inline PowerAndRest power_and_rest(Lanes<float> const& x) {
  using B = Lanes<float>;
  B const n = xsimd::nearbyint(x * B(1.44269504F));
  B const r = xsimd::fnma(n, B(-2.12194440e-4F), xsimd::fnma(n, B(0.693359375F), x));
  B y(1.3814539e-3F);
  for (float const c : {8.3687454e-3F, 4.1668389e-2F, 1.6666521e-1F, 4.9999994e-1F, 1.0F, 1.0F}) y = xsimd::fma(y, r, B(c));
  return {y, n};
}

/// eˣ = 2ⁿ eʳ with r = x − n ln 2, |r| ≤ ln 2 / 2; ln 2 is split in two so that the first product is exact, and eʳ is a polynomial with an
/// error of 0.05 ulp. At most 1 ulp (1.1 without fused multiply-adds; xsimd: 1.5) from `min_x`, below which it is 0, to the overflow to ∞;
/// NaN stays NaN. Takes two thirds of xsimd's time on AVX-512.
[[gnu::always_inline]] inline Lanes<float> exponential_from(Lanes<float> const& x, float min_x) {
  auto const [y, n] = power_and_rest(lesser(Lanes<float>(89.0F), x));  // x where it is NaN
  return scaled_by_power(y, n, x, min_x);
}

/// The same without subnormal results, which are a hundred times slower: 0 below −87.33.
[[gnu::always_inline]] inline Lanes<float> exponential(Lanes<float> const& x) { return exponential_from(x, min_exponent); }

/// exponential(x) of x ≤ 80 or NaN, such as a score minus the largest: the same bits by fewer instructions, except on AVX-512. Attention's
/// forward pass takes 0.96 of the time (B = 12, H = 4, T = 256, d = 64, AVX2, AMD Zen 3).
[[gnu::always_inline]] inline Lanes<float> exponential_of_softmax(Lanes<float> const& x) {
  auto const [y, n] = power_and_rest(x);
  return scaled_by_small_power(y, n, x, min_exponent);
}
[[gnu::always_inline]] inline Lanes<double> exponential_of_softmax(Lanes<double> const& x) { return exponential(x); }

/// eˣ with subnormal results (exponential() gives 0 for these); 1 ulp in float32, 3 in float64.
[[gnu::always_inline]] inline Lanes<float> whole_exponential(Lanes<float> const& x) {
  constexpr float min_x = -103.98F;  // below it eˣ rounds to 0
  return exponential_from(x, min_x);
}
/// Near the ends, where xsimd gives 0 or ∞ too early, the square of e^(x/2).
[[gnu::always_inline]] inline Lanes<double> whole_exponential(Lanes<double> const& x) {
  using B = Lanes<double>;
  auto const ends = xsimd::abs(x) > B(700.0);
  B const root = xsimd::exp(xsimd::select(ends, x * B(0.5), x));
  return xsimd::select(ends, root * root, root);
}

/// eˣ − 1, 2 ulp.
template <class T>
[[gnu::always_inline]] inline Lanes<T> exponential_minus_1(Lanes<T> const& x) {
  Lanes<T> const large(T(60));  // beyond it 1 is less than half an ulp of eˣ
  return xsimd::select(x > large, whole_exponential(x), xsimd::expm1(lesser(large, x)));
}

/// log x, 1 ulp; a subnormal x is scaled to a normal number first.
template <class T>
[[gnu::always_inline]] inline Lanes<T> logarithm(Lanes<T> const& x) {
  using B = Lanes<T>;
  constexpr T min_normal = std::numeric_limits<T>::min();
  constexpr int digits = std::numeric_limits<T>::digits;
  constexpr T factor = static_cast<T>(std::uint64_t{1} << digits), log_2 = static_cast<T>(0.693147180559945309417);
  auto const small = x < B(min_normal);
  B const y = xsimd::log(xsimd::select(small, x * B(factor), x));
  return xsimd::select(small, y - B(static_cast<T>(digits) * log_2), y);
}

/// f of each lane, with the C library's f.
template <class T, class F, class... X>
Lanes<T> each_lane(F const& f, X const&... x) {
  using Numbers = std::array<T, Lanes<T>::size>;
  auto const numbers_of = [](Lanes<T> const& v) {
    alignas(64) Numbers numbers;
    v.store_aligned(numbers.data());
    return numbers;
  };
  std::tuple const values{numbers_of(x)...};
  alignas(64) Numbers result;
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = std::apply([&](auto const&... v) { return f(v[i]...); }, values);
  return Lanes<T>::load_aligned(result.data());
}

/// erf x = 2/√π ∫₀ˣ e^(−t²) dt, 3 ulp.
[[gnu::always_inline]] inline Lanes<float> error_function(Lanes<float> const& x) {
  Lanes<float> const one(6.0F);  // beyond it erf rounds to 1
  return xsimd::erf(greater(-one, lesser(one, x)));
}
/// xsimd's is up to 66 ulp off, and NaN from 1e62 on.
inline Lanes<double> error_function(Lanes<double> const& x) {
  return each_lane<double>([](double v) { return std::erf(v); }, x);
}

/// xʸ by the C library, 1 ulp. (Computed as e^(y log x), the error would be |y log x| ulp, up to 700.)
template <class T>
Lanes<T> power(Lanes<T> const& x, Lanes<T> const& y) {
  return each_lane<T>([](T base, T exponent) { return std::pow(base, exponent); }, x, y);
}

}  // namespace heed::kernels
