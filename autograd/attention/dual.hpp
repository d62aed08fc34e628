#pragma once

#include "autograd/attention/reverse.hpp"

/// Dual numbers: batches with their derivative along a direction. Differentiating a formula backwards (reverse.hpp) over dual numbers gives
/// second derivatives.
namespace heed::reverse {

template <class V>
struct Dual {
  V value, along;

  Dual& operator+=(Dual const& b) {
    value += b.value, along += b.along;
    return *this;
  }
};

template <class V>
Dual<V> constant(double c, Dual<V> const& like) {
  return {constant(c, like.value), constant(0, like.value)};
}
template <class V>
Dual<V> operator-(Dual<V> const& a) {
  return {-a.value, -a.along};
}
template <class V>
Dual<V> operator+(Dual<V> const& a, Dual<V> const& b) {
  return {a.value + b.value, a.along + b.along};
}
template <class V>
Dual<V> operator-(Dual<V> const& a, Dual<V> const& b) {
  return {a.value - b.value, a.along - b.along};
}
template <class V>
Dual<V> operator*(Dual<V> const& a, Dual<V> const& b) {
  return {a.value * b.value, a.value * b.along + a.along * b.value};
}
template <class V>
Dual<V> operator/(Dual<V> const& a, Dual<V> const& b) {
  V const quotient = a.value / b.value;
  return {quotient, (a.along - quotient * b.along) / b.value};
}

template <class V>
auto operator==(Dual<V> const& a, Dual<V> const& b) {
  return a.value == b.value;
}
template <class V>
auto operator<(Dual<V> const& a, Dual<V> const& b) {
  return a.value < b.value;
}
template <class V>
auto operator>(Dual<V> const& a, Dual<V> const& b) {
  return a.value > b.value;
}
template <class Mask, class V>
Dual<V> select(Mask const& where, Dual<V> const& a, Dual<V> const& b) {
  return {xsimd::select(where, a.value, b.value), xsimd::select(where, a.along, b.along)};
}
template <class V>
Dual<V> max(Dual<V> const& a, Dual<V> const& b) {
  return {xsimd::max(a.value, b.value),
          rules::Maximum::slope_a(a.along, a.value, b.value) + rules::Maximum::slope_b(b.along, a.value, b.value)};
}

/// A rule's slope is linear in the incoming gradient d, and so is its derivative along a direction.
#define HEED_OF_DUALS(name, Rule)                        \
  template <class V>                                     \
  Dual<V> name(Dual<V> const& a) {                       \
    V const y = rules::Rule::value(a.value);             \
    return {y, rules::Rule::slope(a.along, a.value, y)}; \
  }
HEED_OF_DUALS(abs, Abs)
HEED_OF_DUALS(exponential, Exp)
HEED_OF_DUALS(logarithm, Log)
HEED_OF_DUALS(log1p, Log1p)
HEED_OF_DUALS(sqrt, Sqrt)
HEED_OF_DUALS(tanh, Tanh)
HEED_OF_DUALS(sin, Sin)
HEED_OF_DUALS(cos, Cos)
#undef HEED_OF_DUALS

}  // namespace heed::reverse
