#pragma once

#include "autograd/check.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/random.hpp"
#include "tests/difference.hpp"
#include "tests/engine.hpp"

// Gradients held against finite differences, and kernels against the same function composed of simple operations.

namespace heed::test {

using Tensors = std::vector<Tensor>;

inline void check_ok(CheckResult const& result) { CHECK_MESSAGE(result.ok, result.message); }

/// Compares jvp of f by each real input, along a random direction, with fourth-order central differences of f: every element of y.
inline void check_jvp(TensorFunction const& f, Tensors const& inputs) {
  constexpr double tolerance = 1e-7, step = 1e-3;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() == DType::int64) continue;
    Tensor const v = Tensor::normal(inputs[i].shape(), Stream(7, "jvpcheck"), DType::float64);
    auto const of = [&](Tensor const& x) {
      Tensors moved = inputs;
      moved[i] = x;
      return f(moved);
    };
    Tensor const along = jvp(of, inputs[i], v);
    NoGrad const no_grad;
    auto const apart = [&](double shift) { return of(inputs[i] + scale(v, shift)) - of(inputs[i] - scale(v, shift)); };
    Tensor const expected = scale(scale(apart(step), 8) - apart(2 * step), 1 / (12 * step));
    for (Index j = 0; j < expected.elements(); ++j) {
      double const error = std::abs(along.at(j) - expected.at(j)) / std::max(1.0, std::abs(expected.at(j)));
      CHECK_MESSAGE(error <= tolerance,
                    "along input " << i << ", element " << j << ": jvp " << along.at(j) << ", finite difference " << expected.at(j));
    }
  }
}

/// Random numbers of the shapes and types of these results.
inline Tensors projection(Tensors const& results) {
  Tensors onto;
  for (Tensor const& y : results) onto.push_back(Tensor::normal(y.shape(), Stream(3, "projection"), DType::float32).to(y.dtype()));
  return onto;
}

/// The results, then the gradients of a random projection of them. Only with create_graph can they be differentiated again.
inline Tensors with_gradients(Tensors results, Tensors const& inputs, bool create_graph = false) {
  Tensors const gradients = grad(results, inputs, projection(results), create_graph);
  if (!create_graph)
    for (Tensor& y : results) y = y.detach();
  results.insert(results.end(), gradients.begin(), gradients.end());
  return results;
}

inline Tensors leaves(Tensors const& values, DType dtype) {
  Tensors result;
  for (Tensor const& x : values) {
    result.push_back(x.to(dtype).detach());
    result.back().set_requires_grad();
  }
  return result;
}

/// The value of f at inputs of this type, then its gradients.
inline Tensors value_and_gradients(TensorFunction const& f, Tensors const& at, DType dtype = DType::float64) {
  Tensors const inputs = leaves(at, dtype);
  return with_gradients({f(inputs)}, inputs);
}

/// Checks values and gradients; where the expected ones are undefined, those found must be.
inline void check_agree(Tensors const& found, Tensors const& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::string const what = i == 0 ? "the value" : fmt::format("the gradient of input {}", i - 1);
    INFO(what);
    REQUIRE(found[i].defined() == expected[i].defined());
    if (found[i].defined()) CHECK(difference(found[i], expected[i]) <= tolerance);
  }
}

/// Checks that results have the same bits on these numbers of threads.
inline void check_threads(std::initializer_list<int> counts, std::function<Tensors()> const& results) {
  Tensors expected;
  for (int const count : counts) {
    CAPTURE(count);
    Threads const threads(count);
    Tensors const found = results();
    if (expected.empty()) expected = found;
    for (std::size_t i = 0; i < found.size(); ++i) CHECK_MESSAGE(same_bits(found[i], expected.at(i)), "result " << i);
  }
}

}  // namespace heed::test
