#pragma once

#include "autograd/graph_memory.hpp"
#include "autograd/kernels/elementary.hpp"
#include "autograd/kernels/map.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/tensor.hpp"

/// An elementwise operation is its formula and its derivative's, each a generic lambda (example: autograd/README.md). Called with xsimd
/// batches, the lambda is the body of one vectorised loop; called with Tensors, it builds a graph, so that derivatives of any order exist.
/// Temporaries in a formula work in both cases.
///
/// This header includes xsimd (1 s of compile time, unless precompiled; 0.2 s per operation). Loops have the including file's vector width.
namespace heed {

/// c in x's type, for formulas: `like(0.5, x)`. Integer literals do not need it.
inline Tensor like(double c, Tensor const& x) { return Tensor::scalar(c, x.dtype()); }
template <class T, class A>
xsimd::batch<T, A> like(double c, xsimd::batch<T, A> const&) {
  return xsimd::batch<T, A>(static_cast<T>(c));
}

/// where(condition, a, b) for batches.
template <class T, class A>
xsimd::batch<T, A> where(xsimd::batch_bool<T, A> const& condition, xsimd::batch<T, A> const& a, xsimd::batch<T, A> const& b) {
  return xsimd::select(condition, a, b);
}
/// clamp(x, low, high) for batches; NaN stays NaN.
template <class T, class A>
xsimd::batch<T, A> clamp(xsimd::batch<T, A> const& x, double low, double high) {
  return kernels::greater(like(low, x), kernels::lesser(like(high, x), x));
}
/// Always inlined, so that its constants stay in registers: saves a sixth of the time.
template <class T, class A>
[[gnu::always_inline]] inline xsimd::batch<T, A> sigmoid(xsimd::batch<T, A> const& x) {
  return 1 / (1 + kernels::exponential(-x));
}

/// dy · slope, 0 where either factor is 0, even if the other is infinite: the gradient of √Σx² at 0.
template <class T, class A>
xsimd::batch<T, A> slope_times(xsimd::batch<T, A> const& dy, xsimd::batch<T, A> const& slope) {
  return xsimd::select((dy == 0) | (slope == 0), xsimd::batch<T, A>(T(0)), dy * slope);
}
Tensor slope_times(Tensor const& dy, Tensor const& slope);

/// The argument of a derivative: (dy, x) or (dy, y). The other array is not kept.
enum class Uses { input, output };

/// Rough costs in nanoseconds per element, by which the pool decides whether to use threads.
inline constexpr double arithmetic_cost = 0.2;
inline constexpr double transcendental_cost = 0.6;

void require_real(char const* operation, Tensor const& x);
void require_same_real(char const* operation, Tensor const& a, Tensor const& b);

/// derivative(dy, …) for batches, 0 where dy is 0 even if the slope is infinite.
template <class Derivative>
auto zero_where_unused(Derivative const& derivative) {
  return [derivative](auto const& dy, auto const&... known) { return where(dy == 0, like(0, dy), derivative(dy, known...)); };
}

/// y = value(x), with dx = derivative(dy, x) or derivative(dy, y).
template <Uses uses, class Value, class Derivative>
Tensor elementwise(char const* operation, Tensor const& x, Value const& value, Derivative const& derivative,
                   double cost = transcendental_cost) {
  require_real(operation, x);
  Tensor y = kernels::map(x.shape(), value, cost, x);
  if (!records(x)) return y;
  y = record(
      operation, {x}, std::move(y), uses == Uses::output ? keep_output : keep_inputs,
      [operation, derivative, cost](BackwardContext const& s) {
        Tensor const& known = uses == Uses::output ? s.y : s.x();
        auto const slope = [derivative, cost](std::vector<Tensor> const& in) {
          return kernels::map(in[0].shape(), zero_where_unused(derivative), cost, in[0], in[1]);
        };
        Tensor dx = slope({s.dy, known});
        return std::vector{recording() ? recomputable(record_derivative(operation, s.dy, known, std::move(dx), derivative), slope) : dx};
      });
  if constexpr (uses == Uses::output) return y;
  return recomputable(std::move(y),
                      [value, cost](std::vector<Tensor> const& in) { return kernels::map(in[0].shape(), value, cost, in[0]); });
}

/// y = value(a, b), with da = derivative_a(dy, a, b) and db = derivative_b(dy, a, b) in the broadcast shape.
template <class Value, class DerivativeA, class DerivativeB>
Tensor elementwise(char const* operation, Tensor const& a, Tensor const& b, Value const& value, DerivativeA const& derivative_a,
                   DerivativeB const& derivative_b, double cost = arithmetic_cost) {
  require_same_real(operation, a, b);
  return record(operation, {a, b}, kernels::map(broadcast(a.shape(), b.shape(), operation), value, cost, a, b), keep_inputs,
                [derivative_a, derivative_b, cost](BackwardContext const& s) {
                  auto const apply = [&](auto const& derivative) {
                    return recording() ? zero_where_unused(s.dy, derivative(s.dy, s.x(0), s.x(1)))
                                       : kernels::map(s.dy.shape(), zero_where_unused(derivative), cost, s.dy, s.x(0), s.x(1));
                  };
                  return std::vector{s.wants(0) ? apply(derivative_a) : Tensor(), s.wants(1) ? apply(derivative_b) : Tensor()};
                });
}

/// y = value(x), or value(a, b), without a derivative.
template <class Value>
Tensor elementwise(char const* operation, Tensor const& x, Value const& value) {
  require_real(operation, x);
  return kernels::map(x.shape(), value, arithmetic_cost, x);
}
template <class Value>
Tensor elementwise(char const* operation, Tensor const& a, Tensor const& b, Value const& value) {
  require_same_real(operation, a, b);
  return kernels::map(broadcast(a.shape(), b.shape(), operation), value, arithmetic_cost, a, b);
}

}  // namespace heed
