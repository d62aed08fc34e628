#pragma once

#include "autograd/tensor.hpp"

/// Elementwise operations (elementwise.cpp, activation.cpp, compare.cpp). Rules common to all operations: autograd/ops/operations.hpp. "n
/// ulp": the largest error over all exponents of both types, in units of the last place of the exact result
/// (tests/autograd/elementary.cpp). An incoming gradient of exactly 0 gives 0 even if the slope is infinite, so that elements dropped by
/// where(), maximum() or clamp() do not contribute. At the edge of a domain the slope is the formula's: ∞ for √ at 0.
namespace heed {

Tensor add(Tensor const& a, Tensor const& b);
Tensor subtract(Tensor const& a, Tensor const& b);
Tensor multiply(Tensor const& a, Tensor const& b);
Tensor divide(Tensor const& a, Tensor const& b);
Tensor scale(Tensor const& x, double factor);  ///< factor · x
Tensor shift(Tensor const& x, double amount);  ///< x + amount
Tensor negate(Tensor const& x);
Tensor reciprocal(Tensor const& x);
Tensor pow(Tensor const& x, double exponent);         ///< 1 ulp; whole exponents up to 64 are products
Tensor pow(Tensor const& x, Tensor const& exponent);  ///< 1 ulp; the exponent's derivative needs x ≥ 0

inline Tensor operator+(Tensor const& a, Tensor const& b) { return add(a, b); }
inline Tensor operator-(Tensor const& a, Tensor const& b) { return subtract(a, b); }
inline Tensor operator*(Tensor const& a, Tensor const& b) { return multiply(a, b); }
inline Tensor operator/(Tensor const& a, Tensor const& b) { return divide(a, b); }
inline Tensor operator-(Tensor const& x) { return negate(x); }
inline Tensor operator+(Tensor const& x, double c) { return shift(x, c); }
inline Tensor operator+(double c, Tensor const& x) { return shift(x, c); }
inline Tensor operator-(Tensor const& x, double c) { return shift(x, -c); }
inline Tensor operator-(double c, Tensor const& x) { return shift(negate(x), c); }
inline Tensor operator*(Tensor const& x, double c) { return scale(x, c); }
inline Tensor operator*(double c, Tensor const& x) { return scale(x, c); }
Tensor operator/(Tensor const& x, double c);
inline Tensor operator/(double c, Tensor const& x) { return divide(Tensor::scalar(c, x.dtype()), x); }

Tensor exp(Tensor const& x);       ///< 1.1 ulp in float32, 3 in float64, subnormal results included
Tensor expm1(Tensor const& x);     ///< eˣ − 1, 3 ulp
Tensor log(Tensor const& x);       ///< 1 ulp
Tensor log1p(Tensor const& x);     ///< log(1 + x), 1 ulp
Tensor sqrt(Tensor const& x);      ///< correctly rounded
Tensor rsqrt(Tensor const& x);     ///< 1/√x, 1.5 ulp
Tensor sin(Tensor const& x);       ///< 2 ulp
Tensor cos(Tensor const& x);       ///< 2 ulp
Tensor tanh(Tensor const& x);      ///< 2 ulp
Tensor sigmoid(Tensor const& x);   ///< 1/(1 + e⁻ˣ), 3 ulp; may be 0 below the least normal number
Tensor softplus(Tensor const& x);  ///< log(1 + eˣ), without overflow, 4 ulp; may be 0 below the least normal number
Tensor erf(Tensor const& x);       ///< 2/√π ∫₀ˣ e^(−t²) dt, 3 ulp
Tensor relu(Tensor const& x);      ///< max(x, 0); derivative 0 at 0
/// x/2 · (1 + tanh(√(2/π)·(x + 0.044715 x³))) (Hendrycks & Gimpel 2016). For |x| ≥ 40 its slope is 0 or 1, as is that of gelu_exact().
Tensor gelu(Tensor const& x);
Tensor gelu_exact(Tensor const& x);  ///< x Φ(x)
Tensor silu(Tensor const& x);        ///< x · sigmoid(x)
Tensor abs(Tensor const& x);         ///< derivative 0 at 0
/// Derivative 1 inside and at the bounds, 0 outside.
Tensor clamp(Tensor const& x, double low, double high);
/// At ties each argument gets half of the gradient.
Tensor maximum(Tensor const& a, Tensor const& b);
Tensor minimum(Tensor const& a, Tensor const& b);

// Comparisons return 1 or 0 in the dtype of their arguments and have no derivative.
Tensor greater(Tensor const& a, Tensor const& b);
Tensor greater_equal(Tensor const& a, Tensor const& b);
Tensor less(Tensor const& a, Tensor const& b);
Tensor less_equal(Tensor const& a, Tensor const& b);
Tensor equal(Tensor const& a, Tensor const& b);
Tensor not_equal(Tensor const& a, Tensor const& b);
inline Tensor operator>(Tensor const& a, Tensor const& b) { return greater(a, b); }
inline Tensor operator<(Tensor const& a, Tensor const& b) { return less(a, b); }
inline Tensor operator>=(Tensor const& a, Tensor const& b) { return greater_equal(a, b); }
inline Tensor operator<=(Tensor const& a, Tensor const& b) { return less_equal(a, b); }
inline Tensor operator>(Tensor const& a, double c) { return greater(a, Tensor::scalar(c, a.dtype())); }
inline Tensor operator<(Tensor const& a, double c) { return less(a, Tensor::scalar(c, a.dtype())); }
inline Tensor operator>=(Tensor const& a, double c) { return greater_equal(a, Tensor::scalar(c, a.dtype())); }
inline Tensor operator<=(Tensor const& a, double c) { return less_equal(a, Tensor::scalar(c, a.dtype())); }

/// a where `condition` is not 0, else b.
Tensor where(Tensor const& condition, Tensor const& a, Tensor const& b);
/// `value` where `mask` is not 0, else x.
Tensor masked_fill(Tensor const& x, Tensor const& mask, double value);
/// x as a constant: no gradient flows through.
Tensor stop_gradient(Tensor const& x);

namespace kernels {

/// into += addition, element by element; same shape and real dtype.
void add_in_place(Tensor& into, Tensor const& addition);

}  // namespace kernels

}  // namespace heed
