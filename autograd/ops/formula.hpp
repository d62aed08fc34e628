#pragma once

#include <fmt/format.h>

#include "autograd/check.hpp"
#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/kernels/exponential.hpp"
#include "autograd/kernels/map.hpp"
#include "autograd/operations.hpp"

/// One formula, two readings. An elementwise operation is its formula and its derivative's, each a generic lambda over values. Given
/// xsimd batches it is the body of one vectorised xtensor expression over the whole array; given Tensors it builds a graph, so that
/// second and higher derivatives exist without another line. Temporaries inside a formula are values in both readings.
namespace heed {

/// c in x's type, for formulas: `like(0.5, x)`. Literals that are whole numbers need no help.
inline Tensor like(double c, Tensor const& x) { return Tensor::scalar(c, x.dtype()); }
template <class T, class A>
xsimd::batch<T, A> like(double c, xsimd::batch<T, A> const&) {
  return xsimd::batch<T, A>(static_cast<T>(c));
}

/// The batch's reading of where(condition, a, b).
template <class T, class A>
xsimd::batch<T, A> where(xsimd::batch_bool<T, A> const& condition, xsimd::batch<T, A> const& a, xsimd::batch<T, A> const& b) {
  return xsimd::select(condition, a, b);
}
/// Inlined whatever the compiler thinks: its constants then stay in registers, a sixth of its time.
template <class T, class A>
[[gnu::always_inline]] inline xsimd::batch<T, A> sigmoid(xsimd::batch<T, A> const& x) {
  return 1 / (1 + kernels::exponential(-x));
}

/// What a derivative is written in: (dy, x) or (dy, y). The other array is not kept.
enum class Uses { input, output };

/// Rough costs in nanoseconds an element, by which the pool decides whether to wake.
inline constexpr double arithmetic_cost = 0.2;
inline constexpr double transcendental_cost = 0.6;

void require_real(char const* operation, Tensor const& x);
void require_same_real(char const* operation, Tensor const& a, Tensor const& b);

/// y = value(x), with dx = derivative(dy, x) or derivative(dy, y).
template <Uses uses, class Value, class Derivative>
Tensor elementwise(char const* operation, Tensor const& x, Value const& value, Derivative const& derivative,
                   double cost = transcendental_cost) {
  require_real(operation, x);
  Tensor y = kernels::map(x.shape(), value, cost, x);
  if (!records(x)) return y;
  y = record(operation, {x}, std::move(y), uses == Uses::output ? keep_output : keep_inputs, [derivative, cost](Step const& s) {
    Tensor const& known = uses == Uses::output ? s.y : s.x();
    return std::vector{recording() ? derivative(s.dy, known) : kernels::map(s.dy.shape(), derivative, cost, s.dy, known)};
  });
  if constexpr (uses == Uses::output) return y;
  return remakeable(std::move(y), [value, cost](std::vector<Tensor> const& in) { return kernels::map(in[0].shape(), value, cost, in[0]); });
}

/// y = value(a, b), with da = derivative_a(dy, a, b) and db = derivative_b(dy, a, b) in the broadcast shape.
template <class Value, class DerivativeA, class DerivativeB>
Tensor elementwise(char const* operation, Tensor const& a, Tensor const& b, Value const& value, DerivativeA const& derivative_a,
                   DerivativeB const& derivative_b, double cost = arithmetic_cost) {
  require_same_real(operation, a, b);
  return record(operation, {a, b}, kernels::map(broadcast(a.shape(), b.shape(), operation), value, cost, a, b), keep_inputs,
                [derivative_a, derivative_b, cost](Step const& s) {
                  auto const apply = [&](auto const& derivative) {
                    return recording() ? derivative(s.dy, s.x(0), s.x(1))
                                       : kernels::map(s.dy.shape(), derivative, cost, s.dy, s.x(0), s.x(1));
                  };
                  return std::vector{s.wants(0) ? apply(derivative_a) : Tensor(), s.wants(1) ? apply(derivative_b) : Tensor()};
                });
}

/// y = value(a, b) without a derivative.
template <class Value>
Tensor elementwise(char const* operation, Tensor const& a, Tensor const& b, Value const& value) {
  require_same_real(operation, a, b);
  return kernels::map(broadcast(a.shape(), b.shape(), operation), value, arithmetic_cost, a, b);
}

/// Registers a function of one tensor with samples over [low, high).
inline OperationCheck unary_check(std::string name, std::string formula, Tensor (*function)(Tensor const&), double low = -2,
                                  double high = 2) {
  TensorFunction const call = [function](std::vector<Tensor> const& x) { return function(x[0]); };
  std::vector<Sample> samples;
  for (Shape const& shape : {Shape{3, 5}, Shape{}, Shape{1}, Shape{19}, Shape{0, 4}}) samples.push_back({{{shape, low, high}}, call});
  return {std::move(name), std::move(formula), std::move(samples), {{[function] { function(Tensor::arange(2, DType::int64)); }, "int64"}}};
}

/// Registers a function of two tensors, over broadcast shapes, with samples over the ranges given for each.
inline OperationCheck binary_check(std::string name, std::string formula, Tensor (*function)(Tensor const&, Tensor const&),
                                   SampleInput a = {{}, -2, 2}, SampleInput b = {{}, -2, 2}, bool differentiable = true) {
  TensorFunction const call = [function](std::vector<Tensor> const& x) { return function(x[0], x[1]); };
  std::vector<Sample> samples;
  std::vector<std::pair<Shape, Shape>> const shapes{{{2, 3}, {2, 3}}, {{3, 1, 5}, {4, 1}}, {{5}, {2, 3, 5}},
                                                    {{}, {3}},        {{0, 2}, {1, 2}},    {{2, 1, 3, 1}, {4, 1, 7}}};
  for (auto const& [left, right] : shapes) samples.push_back({{{left, a.low, a.high}, {right, b.low, b.high}}, call});
  std::string const message = name + ": shapes do not broadcast: [2, 3] and [4]";
  auto const wrong = [function] { function(Tensor::zeros({2, 3}, DType::float64), Tensor::zeros({4}, DType::float64)); };
  auto const mixed = [function] { function(Tensor::zeros({2}, DType::float64), Tensor::zeros({2}, DType::float32)); };
  return {name,
          std::move(formula),
          std::move(samples),
          {{wrong, message}, {mixed, name + ": dtypes differ: float64 and float32"}},
          differentiable};
}

}  // namespace heed
