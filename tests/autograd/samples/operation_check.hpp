#pragma once

#include "autograd/check.hpp"
#include "autograd/ops/operations.hpp"
#include "tests/test.hpp"

/// How operations are called by the suite `operations`: each file beside this one declares the checks of a family.
namespace heed::test {

using Tensors = std::vector<Tensor>;

/// Numbers are drawn from [low, high).
struct Range {
  double low = -2, high = 2;
};

/// A random real input.
struct SampleInput {
  Shape shape;
  Range range = {};
};

/// One way to call an operation, smooth over the range of its inputs.
struct Sample {
  std::vector<SampleInput> inputs;
  TensorFunction call;
  TensorFunction reference = {};  ///< the unfused composition, where `call` has kernels
};

/// A call that must fail, and what the message must contain.
struct ErrorCase {
  std::function<void()> call;
  std::string message;
};

/// An operation's name, as in autograd/ops/info.cpp, or several checks' names: "abs" and "abs (negative)".
struct OperationCheck {
  std::string name;
  std::vector<Sample> samples;
  std::vector<ErrorCase> errors = {};
  bool differentiable = true;
};

/// Adds the checks of a family to Registry<OperationCheck>.
struct DeclaredChecks {
  explicit DeclaredChecks(std::vector<OperationCheck> checks);
};

/// The check of a function of one tensor.
OperationCheck unary_check(std::string name, Tensor (*function)(Tensor const&), Range range = {});
/// The check of a function of two tensors, over shapes that broadcast.
OperationCheck binary_check(std::string name, Tensor (*function)(Tensor const&, Tensor const&), Range a = {}, Range b = {},
                            bool differentiable = true);

/// A sample of f(x, rest…).
template <class F, class... Rest>
Sample one(Shape const& shape, F f, Rest... rest) {
  return {.inputs = {SampleInput{shape}}, .call = [=](Tensors const& x) { return f(x[0], rest...); }};
}
/// A sample of several inputs.
Sample several(std::vector<Shape> const& shapes, TensorFunction call, TensorFunction reference = {});

/// The call f(arguments…).
template <class F, class... Arguments>
ErrorCase fails(std::string message, F f, Arguments... arguments) {
  return {[=] { f(arguments...); }, std::move(message)};
}

inline Tensor zeros(Shape const& shape, DType dtype = DType::float64) { return Tensor::zeros(shape, dtype); }
inline Tensor integers(std::vector<Index> const& values, Shape const& shape) { return Tensor::of(values, shape); }

}  // namespace heed::test
