// Arithmetic and the elementary functions.

#include "autograd/ops/elementwise.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include <fmt/format.h>

#include "autograd/elementwise.hpp"
#include "autograd/kernels/elementary.hpp"

namespace heed {

void require_real(char const* operation, Tensor const& x) {
  if (x.dtype() == DType::int64) throw Error(fmt::format("{}: wants real numbers, not int64 {}", operation, to_string(x.shape())));
}

void require_same_real(char const* operation, Tensor const& a, Tensor const& b) {
  if (a.dtype() != b.dtype())
    throw Error(fmt::format("{}: dtypes differ: {} and {}", operation, to_string(a.dtype()), to_string(b.dtype())));
  require_real(operation, a);
}

// ---------------------------------------------------------------- arithmetic

Tensor add(Tensor const& a, Tensor const& b) {
  Tensor y = elementwise("add", a, b, [](auto u, auto v) { return u + v; });
  return record("add", {a, b}, std::move(y), keep_nothing, [](BackwardContext const& s) { return std::vector{s.dy, s.dy}; });
}

Tensor subtract(Tensor const& a, Tensor const& b) {
  Tensor y = elementwise("subtract", a, b, [](auto u, auto v) { return u - v; });
  return record("subtract", {a, b}, std::move(y), keep_nothing, [](BackwardContext const& s) {
    return std::vector{s.dy, s.wants(1) ? negate(s.dy) : Tensor()};
  });
}

Tensor multiply(Tensor const& a, Tensor const& b) {
  return elementwise(
      "multiply", a, b, [](auto x, auto y) { return x * y; },    //
      [](auto dy, auto, auto y) { return slope_times(dy, y); },  //
      [](auto dy, auto x, auto) { return slope_times(dy, x); });
}

Tensor divide(Tensor const& a, Tensor const& b) {
  return elementwise(
      "divide", a, b, [](auto x, auto y) { return x / y; },          //
      [](auto dy, auto, auto y) { return dy / y; },                  //
      [](auto dy, auto x, auto y) { return -(dy / y) * (x / y); });  // y · y may leave the range where both quotients are in it
}

Tensor scale(Tensor const& x, double factor) {
  Tensor y = elementwise("scale", x, [factor](auto v) { return v * like(factor, v); });
  return record("scale", {x}, std::move(y), keep_nothing, [factor](BackwardContext const& s) { return std::vector{scale(s.dy, factor)}; });
}

Tensor operator/(Tensor const& x, double c) {
  double const factor = 1 / c,
               min_normal = x.dtype() == DType::float32 ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  bool const normal = std::abs(factor) >= min_normal && std::abs(factor) <= 1 / min_normal;
  return normal ? scale(x, factor) : divide(x, Tensor::scalar(c, x.dtype()));
}

Tensor shift(Tensor const& x, double amount) {
  Tensor y = elementwise("shift", x, [amount](auto v) { return v + like(amount, v); });
  return record("shift", {x}, std::move(y), keep_nothing, [](BackwardContext const& s) { return std::vector{s.dy}; });
}

Tensor negate(Tensor const& x) {
  Tensor y = elementwise("negate", x, [](auto v) { return -v; });
  return record("negate", {x}, std::move(y), keep_nothing, [](BackwardContext const& s) { return std::vector{negate(s.dy)}; });
}

Tensor reciprocal(Tensor const& x) {
  return elementwise<Uses::output>(
      "reciprocal", x, [](auto v) { return 1 / v; }, [](auto dy, auto y) { return -(dy * y * y); });
}

namespace {

// Building blocks of the derivatives of powers, in both readings.
Tensor raised(Tensor const& base, Tensor const& exponent) { return pow(base, exponent); }
Tensor log_of(Tensor const& x) { return log(x); }
template <class T, class A>
xsimd::batch<T, A> raised(xsimd::batch<T, A> const& base, xsimd::batch<T, A> const& exponent) {
  return kernels::power(base, exponent);
}
template <class T, class A>
xsimd::batch<T, A> log_of(xsimd::batch<T, A> const& x) {
  return kernels::logarithm(x);
}

}  // namespace

Tensor pow(Tensor const& x, double exponent) {
  // Whole exponents are products, so that negative bases work and 0⁰ = 1.
  if (exponent == std::floor(exponent) && std::abs(exponent) <= 64) {
    auto const power = static_cast<int>(exponent);
    return elementwise<Uses::input>(
        "pow", x, [power](auto v) { return xsimd::pow(v, power); },
        [power](auto dy, auto v) {
          if (power == 0) return dy * like(0, dy);
          return slope_times(dy, like(power, v) * pow(v, power - 1));
        });
  }
  return elementwise<Uses::input>(
      "pow", x, [exponent](auto v) { return kernels::power(v, like(exponent, v)); },
      [exponent](auto dy, auto v) { return slope_times(dy, like(exponent, v) * raised(v, like(exponent - 1, v))); });
}

Tensor pow(Tensor const& x, Tensor const& exponent) {
  return elementwise(
      "pow", x, exponent, [](auto a, auto b) { return kernels::power(a, b); },
      [](auto dy, auto a, auto b) {  // 0 for b = 0, whatever a is
        auto const slope = dy * b * raised(a, b - 1);
        return where(b > 0, slope, where(b < 0, slope, like(0, slope)));
      },
      [](auto dy, auto a, auto b) {  // 0 for a = 0, b > 0
        auto const slope = dy * raised(a, b) * log_of(a);
        return where(b > 0, where(a > 0, slope, where(a < 0, slope, like(0, slope))), slope);
      },
      transcendental_cost);
}

// ---------------------------------------------------------------- elementary functions

Tensor exp(Tensor const& x) {
  return elementwise<Uses::output>(
      "exp", x, [](auto v) { return kernels::whole_exponential(v); }, [](auto dy, auto y) { return dy * y; });
}

Tensor expm1(Tensor const& x) {
  return elementwise<Uses::output>(
      "expm1", x, [](auto v) { return kernels::exponential_minus_1(v); }, [](auto dy, auto y) { return dy * (y + 1); });
}

Tensor log(Tensor const& x) {
  return elementwise<Uses::input>(
      "log", x, [](auto v) { return kernels::logarithm(v); }, [](auto dy, auto v) { return dy / v; });
}

Tensor log1p(Tensor const& x) {
  return elementwise<Uses::input>(
      "log1p", x, [](auto v) { return log1p(v); }, [](auto dy, auto v) { return dy / (v + 1); });
}

Tensor sqrt(Tensor const& x) {
  return elementwise<Uses::output>(
      "sqrt", x, [](auto v) { return sqrt(v); }, [](auto dy, auto y) { return dy / (2 * y); });
}

Tensor rsqrt(Tensor const& x) {
  return elementwise<Uses::output>(
      "rsqrt", x, [](auto v) { return 1 / sqrt(v); }, [](auto dy, auto y) { return dy * like(-0.5, dy) * y * y * y; });
}

Tensor sin(Tensor const& x) {
  return elementwise<Uses::input>(
      "sin", x, [](auto v) { return sin(v); }, [](auto dy, auto v) { return dy * cos(v); });
}

Tensor cos(Tensor const& x) {
  return elementwise<Uses::input>(
      "cos", x, [](auto v) { return cos(v); }, [](auto dy, auto v) { return -(dy * sin(v)); });
}

Tensor erf(Tensor const& x) {
  return elementwise<Uses::input>(
      "erf", x, [](auto v) { return kernels::error_function(v); },
      [](auto dy, auto v) { return dy * (like(2 * std::numbers::inv_sqrtpi, v) * exp(-(v * v))); });
}

namespace kernels {

void add_in_place(Tensor& into, Tensor const& addition) {
  auto const plus = [](auto x, auto y) { return x + y; };
  map_into(into, loops<2>(plus), arithmetic_cost, std::array{static_cast<Tensor const*>(&into), &addition});
}

}  // namespace kernels

}  // namespace heed
