#pragma once

#include "autograd/tensor.hpp"

/// Element by element (ops/elementwise.cpp, ops/activation.cpp, ops/compare.cpp). What all operations have in common:
/// autograd/operations.hpp.
namespace heed {

Tensor add(Tensor const& a, Tensor const& b);
Tensor subtract(Tensor const& a, Tensor const& b);
Tensor multiply(Tensor const& a, Tensor const& b);
Tensor divide(Tensor const& a, Tensor const& b);
Tensor scale(Tensor const& x, double factor);  ///< factor · x
Tensor shift(Tensor const& x, double amount);  ///< x + amount
Tensor negate(Tensor const& x);
Tensor reciprocal(Tensor const& x);
Tensor pow(Tensor const& x, double exponent);
Tensor pow(Tensor const& x, Tensor const& exponent);  ///< x > 0

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
inline Tensor operator/(Tensor const& x, double c) { return scale(x, 1 / c); }
inline Tensor operator/(double c, Tensor const& x) { return scale(reciprocal(x), c); }

Tensor exp(Tensor const& x);
Tensor expm1(Tensor const& x);
Tensor log(Tensor const& x);
Tensor log1p(Tensor const& x);
Tensor sqrt(Tensor const& x);
Tensor rsqrt(Tensor const& x);  ///< 1/√x
Tensor sin(Tensor const& x);
Tensor cos(Tensor const& x);
Tensor tanh(Tensor const& x);
Tensor sigmoid(Tensor const& x);   ///< 1/(1 + e⁻ˣ)
Tensor softplus(Tensor const& x);  ///< log(1 + eˣ), without overflow
Tensor erf(Tensor const& x);
Tensor relu(Tensor const& x);        ///< max(x, 0); derivative 0 at 0
Tensor gelu(Tensor const& x);        ///< x/2 · (1 + tanh(√(2/π)·(x + 0.044715 x³))) (Hendrycks & Gimpel 2016)
Tensor gelu_exact(Tensor const& x);  ///< x Φ(x)
Tensor silu(Tensor const& x);        ///< x · sigmoid(x)
Tensor abs(Tensor const& x);         ///< derivative 0 at 0
/// Derivative 1 inside and on the edges, 0 outside.
Tensor clamp(Tensor const& x, double low, double high);
/// At ties each gets half of the gradient.
Tensor maximum(Tensor const& a, Tensor const& b);
Tensor minimum(Tensor const& a, Tensor const& b);

// Comparisons give 1 and 0 in the dtype of their arguments and have no derivative.
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
/// x, as a constant: no gradient flows through.
Tensor stop_gradient(Tensor const& x);

}  // namespace heed
