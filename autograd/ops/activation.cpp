// Activation functions.

#include <numbers>

#include "autograd/elementwise.hpp"
#include "autograd/kernels/elementary.hpp"

namespace heed {

Tensor tanh(Tensor const& x) {
  return elementwise<Uses::output>(
      "tanh", x, [](auto v) { return tanh(v); }, [](auto dy, auto y) { return dy * (1 - y * y); });
}

Tensor sigmoid(Tensor const& x) {
  return elementwise<Uses::output>(
      "sigmoid", x, [](auto v) { return sigmoid(v); }, [](auto dy, auto y) { return dy * (y * (1 - y)); });
}

Tensor softplus(Tensor const& x) {
  return elementwise<Uses::input>(
      "softplus", x, [](auto v) { return where(v > 0, v, like(0, v)) + log1p(exp(-abs(v))); },
      [](auto dy, auto v) { return dy * sigmoid(v); });
}

Tensor relu(Tensor const& x) {
  // Written with <, so that a NaN stays one.
  return elementwise<Uses::output>(
      "relu", x, [](auto v) { return where(v < 0, like(0, v), v); }, [](auto dy, auto y) { return where(y > 0, dy, like(0, dy)); },
      arithmetic_cost);
}

Tensor silu(Tensor const& x) {
  return elementwise<Uses::input>(
      "silu", x, [](auto v) { return v * sigmoid(v); },
      [](auto dy, auto v) {
        auto const s = sigmoid(v);
        return dy * (s * (1 + v * (1 - s)));
      });
}

namespace {

// gelu's 1/2 (1 + tanh u) = sigmoid(2u), 2u = x (steepness + bend · x²)
constexpr double steepness = 2 * 0.7978845608028653559;  // 2 √(2/π)
constexpr double bend = 0.044715 * steepness;
// From here on the slopes of both forms are 0 and 1 in either precision; further out x² leaves the range of numbers.
constexpr double constant_from = 40;

}  // namespace

Tensor gelu(Tensor const& x) {
  return elementwise<Uses::input>(
      "gelu", x, [](auto v) { return v * sigmoid(v * (like(steepness, v) + like(bend, v) * (v * v))); },
      [](auto dy, auto v) {
        auto const near = clamp(v, -constant_from, constant_from);
        auto const square = near * near;
        auto const s = sigmoid(near * (like(steepness, v) + like(bend, v) * square));
        return dy * (s * (1 + near * (like(steepness, v) + like(3 * bend, v) * square) * (1 - s)));
      });
}

Tensor gelu_exact(Tensor const& x) {
  return elementwise<Uses::input>(
      "gelu_exact", x, [](auto v) { return v * (like(0.5, v) * (1 + kernels::error_function(v * like(1 / std::numbers::sqrt2, v)))); },
      [](auto dy, auto v) {
        auto const near = clamp(v, -constant_from, constant_from);
        auto const below = like(0.5, v) * (1 + erf(near * like(1 / std::numbers::sqrt2, v)));
        auto const density = like(std::numbers::inv_sqrtpi / std::numbers::sqrt2, v) * exp(near * near / -2);
        return dy * (below + near * density);
      });
}

}  // namespace heed
