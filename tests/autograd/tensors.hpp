#pragma once

#include "autograd/ops/operations.hpp"
#include "tests/gradients.hpp"

// What the engine's suites have in common: the operations, their gradients, and tensors to call them with.

namespace heed::test {

using Values = std::vector<double>;

inline Tensor vector_of(Values const& values, DType dtype = DType::float64) { return Tensor::of(values, {std::ssize(values)}, dtype); }

inline Tensor leaf(Values const& values, Shape const& shape, DType dtype = DType::float64) {
  return Tensor::of(values, shape, dtype).set_requires_grad();
}
inline Tensor leaf(Values const& values, DType dtype = DType::float64) { return vector_of(values, dtype).set_requires_grad(); }

inline Tensor scalar_leaf(double value) { return leaf({value}, Shape{}); }

/// Normal numbers from a stream of this name, and a leaf of such.
inline Tensor normal(Shape const& shape, std::string const& name, DType dtype = DType::float64) {
  return Tensor::normal(shape, Stream(1, name), dtype);
}
inline Tensor normal_leaf(Shape const& shape, std::string const& name, DType dtype = DType::float64) {
  return normal(shape, name, dtype).set_requires_grad();
}

/// √Σ(a − b)², relative to √Σb².
inline double distance(Tensor const& a, Tensor const& b) {
  REQUIRE(a.shape() == b.shape());
  Tensor const wide = b.to(DType::float64);
  return std::sqrt(sum_of_squares(a.to(DType::float64) - wide).item() / sum_of_squares(wide).item());
}

inline bool same_bits(std::vector<Tensor> const& a, std::vector<Tensor> const& b) {
  return std::ranges::equal(a, b, [](Tensor const& x, Tensor const& y) { return same_bits(x, y); });
}

}  // namespace heed::test
