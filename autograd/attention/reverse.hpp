#pragma once

#include <cmath>
#include <cstddef>
#include <type_traits>

#include "autograd/kernels/elementary.hpp"

/// Reverse-mode differentiation of formulas over a few numbers, at compile time. A generic lambda, given Variables, returns an expression
/// whose type is the formula and which holds every intermediate value. `back(d, sums)` adds d · ∂value/∂x_I to sums for every variable I.
/// There is no tape; the cost is about that of a derivative written by hand, and constants cost nothing. Values are xsimd batches.
namespace heed::reverse {

template <class E>
concept Expression = requires {
  typename E::Value;
};

template <class V, std::size_t I>
struct Variable {
  using Value = V;
  V value;
  template <class Sums>
  void back(V const& d, Sums& sums) const {
    sums.template add<I>(d);
  }
};

template <class V>
struct Constant {
  using Value = V;
  V value;
  template <class Sums>
  void back(V const&, Sums&) const {}
};

/// Rule::value(a), and Rule::slope(d, a, y) = d · ∂y/∂a.
template <class Rule, Expression A>
struct Unary {
  using Value = typename A::Value;
  Rule rule;
  A a;
  Value value = rule.value(a.value);
  template <class Sums>
  void back(Value const& d, Sums& sums) const {
    a.back(rule.slope(d, a.value, value), sums);
  }
};

/// Rule::value(a, b), Rule::slope_a(d, a, b) = d · ∂y/∂a, and Rule::slope_b(d, a, b) = d · ∂y/∂b.
template <class Rule, Expression A, Expression B>
struct Binary {
  using Value = typename A::Value;
  A a;
  B b;
  Value value = Rule::value(a.value, b.value);
  template <class Sums>
  void back(Value const& d, Sums& sums) const {
    a.back(Rule::slope_a(d, a.value, b.value), sums);
    b.back(Rule::slope_b(d, a.value, b.value), sums);
  }
};

// ---------------------------------------------------------------- constants

template <class T, class A>
xsimd::batch<T, A> constant(double c, xsimd::batch<T, A> const&) {
  return xsimd::batch<T, A>(static_cast<T>(c));
}
/// c as a number of the formula's type.
template <Expression E>
Constant<typename E::Value> like(double c, E const& e) {
  return {constant(c, e.value)};
}

// ---------------------------------------------------------------- arithmetic

namespace rules {

/// slope(d, known…), or 0 where d is 0 even if the slope is ∞: what a maximum or select drops has the gradient 0, not 0 · ∞.
template <class Slope, class D, class... Known>
D zero_where_unused(Slope const& slope, D const& d, Known const&... known) {
  if constexpr (requires { d.along; }) {
    D const all = slope(d, known...);
    auto const zero = constant(0, d.value);
    auto const unused = d.value == zero;
    return {xsimd::select(unused, zero, all.value), xsimd::select(unused, zero_where_unused(slope, d.along, known.value...), all.along)};
  } else {
    return xsimd::select(d == constant(0, d), constant(0, d), slope(d, known...));
  }
}

// For batches; those of Dual are found by its namespace.
using kernels::exponential, kernels::logarithm;
using xsimd::abs, xsimd::cos, xsimd::log1p, xsimd::max, xsimd::select, xsimd::sin, xsimd::sqrt, xsimd::tanh;

struct Add {
  static auto value(auto const& a, auto const& b) { return a + b; }
  static auto slope_a(auto const& d, auto const&, auto const&) { return d; }
  static auto slope_b(auto const& d, auto const&, auto const&) { return d; }
};
struct Subtract {
  static auto value(auto const& a, auto const& b) { return a - b; }
  static auto slope_a(auto const& d, auto const&, auto const&) { return d; }
  static auto slope_b(auto const& d, auto const&, auto const&) { return -d; }
};
struct Multiply {
  static auto value(auto const& a, auto const& b) { return a * b; }
  static auto slope_a(auto const& d, auto const&, auto const& b) { return d * b; }
  static auto slope_b(auto const& d, auto const& a, auto const&) { return d * a; }
};
struct Divide {
  static auto value(auto const& a, auto const& b) { return a / b; }
  static auto slope_a(auto const& d, auto const&, auto const& b) {
    return zero_where_unused([](auto const& g, auto const& y) { return g / y; }, d, b);
  }
  static auto slope_b(auto const& d, auto const& a, auto const& b) {  // b · b may overflow or underflow where neither quotient does
    return zero_where_unused([](auto const& g, auto const& x, auto const& y) { return -(g / y) * (x / y); }, d, a, b);
  }
};
/// At ties each argument gets half of the gradient.
struct Maximum {
  static auto value(auto const& a, auto const& b) { return max(a, b); }
  static auto share(auto const& d, auto const& a, auto const& b) {
    return select(a > b, d, select(a == b, d * constant(0.5, d), constant(0, d)));
  }
  static auto slope_a(auto const& d, auto const& a, auto const& b) { return share(d, a, b); }
  static auto slope_b(auto const& d, auto const& a, auto const& b) { return share(d, b, a); }
};
struct Negate {
  static auto value(auto const& a) { return -a; }
  static auto slope(auto const& d, auto const&, auto const&) { return -d; }
};

}  // namespace rules

#define HEED_OPERATOR(symbol, Rule)              \
  template <Expression A, Expression B>          \
  auto operator symbol(A const& a, B const& b) { \
    return Binary<rules::Rule, A, B>{a, b};      \
  }                                              \
  template <Expression A>                        \
  auto operator symbol(A const& a, double b) {   \
    return a symbol like(b, a);                  \
  }                                              \
  template <Expression B>                        \
  auto operator symbol(double a, B const& b) {   \
    return like(a, b) symbol b;                  \
  }
HEED_OPERATOR(+, Add)
HEED_OPERATOR(-, Subtract)
HEED_OPERATOR(*, Multiply)
HEED_OPERATOR(/, Divide)
#undef HEED_OPERATOR

template <Expression A>
auto operator-(A const& a) {
  return Unary<rules::Negate, A>{{}, a};
}
template <Expression A, Expression B>
auto maximum(A const& a, B const& b) {
  return Binary<rules::Maximum, A, B>{a, b};
}
template <Expression A, Expression B>
auto minimum(A const& a, B const& b) {
  return -maximum(-a, -b);
}

// ---------------------------------------------------------------- elementary functions

namespace rules {

/// The derivative at 0 is 0.
struct Abs {
  static auto value(auto const& a) { return abs(a); }
  static auto slope(auto const& d, auto const& a, auto const&) {
    auto const zero = constant(0, a);
    return select(a == zero, constant(0, d), select(a < zero, -d, d));
  }
};
struct Exp {
  static auto value(auto const& a) { return exponential(a); }
  static auto slope(auto const& d, auto const&, auto const& y) { return d * y; }
};
struct Log {
  static auto value(auto const& a) { return logarithm(a); }
  static auto slope(auto const& d, auto const& a, auto const&) { return Divide::slope_a(d, a, a); }
};
struct Log1p {
  static auto value(auto const& a) { return log1p(a); }
  static auto slope(auto const& d, auto const& a, auto const&) { return Divide::slope_a(d, a, a + constant(1, a)); }
};
struct Sqrt {
  static auto value(auto const& a) { return sqrt(a); }
  static auto slope(auto const& d, auto const&, auto const& y) { return Divide::slope_a(d * constant(0.5, d), y, y); }
};
struct Tanh {
  static auto value(auto const& a) { return tanh(a); }
  static auto slope(auto const& d, auto const&, auto const& y) { return d * (constant(1, y) - y * y); }
};
struct Sigmoid {
  static auto value(auto const& a) { return constant(1, a) / (constant(1, a) + exponential(-a)); }
  static auto slope(auto const& d, auto const&, auto const& y) { return d * y * (constant(1, y) - y); }
};
struct Sin {
  static auto value(auto const& a) { return sin(a); }
  static auto slope(auto const& d, auto const& a, auto const&) { return d * cos(a); }
};
struct Cos {
  static auto value(auto const& a) { return cos(a); }
  static auto slope(auto const& d, auto const& a, auto const&) { return -d * sin(a); }
};
/// xᶜ for a constant c: any x for integer c, else x ≥ 0.
struct Power {
  double exponent;
  static auto of(auto const& x, double c) {
    if constexpr (requires { x.along; })
      return std::remove_cvref_t<decltype(x)>{of(x.value, c), Power{c}.slope(x.along, x.value, x.value)};
    else {
      if (c == std::floor(c) && std::abs(c) <= 64) return xsimd::pow(x, static_cast<int>(c));
      if (c == 0.5) return sqrt(x);
      if (c == 1.5) return x * sqrt(x);
      return kernels::power(x, constant(c, x));
    }
  }
  auto value(auto const& a) const { return of(a, exponent); }
  auto slope(auto const& d, auto const& a, auto const&) const {
    return zero_where_unused([&](auto const& g, auto const& x) { return g * constant(exponent, x) * of(x, exponent - 1); }, d, a);
  }
};

}  // namespace rules

#define HEED_FUNCTION(name, Rule)        \
  template <Expression A>                \
  auto name(A const& a) {                \
    return Unary<rules::Rule, A>{{}, a}; \
  }
HEED_FUNCTION(abs, Abs)
HEED_FUNCTION(exp, Exp)
HEED_FUNCTION(log, Log)
HEED_FUNCTION(log1p, Log1p)
HEED_FUNCTION(sqrt, Sqrt)
HEED_FUNCTION(tanh, Tanh)
HEED_FUNCTION(sigmoid, Sigmoid)
HEED_FUNCTION(sin, Sin)
HEED_FUNCTION(cos, Cos)
#undef HEED_FUNCTION

template <Expression A>
auto pow(A const& a, double exponent) {
  return Unary<rules::Power, A>{{exponent}, a};
}
template <Expression A>
auto pow(A const& a, int exponent) {
  return pow(a, static_cast<double>(exponent));
}

// ---------------------------------------------------------------- dual numbers

/// Batches with their derivative along a direction. Differentiating a formula backwards over dual numbers gives second derivatives.
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
