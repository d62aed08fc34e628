#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "autograd/registry.hpp"
#include "autograd/tensor.hpp"

namespace heed {

using TensorFunction = std::function<Tensor(std::vector<Tensor> const&)>;

/// The outcome of a check: the largest error found, relative to max(1, |value|), and where; `ok` if it is within the tolerance.
struct CheckResult {
  bool ok = true;
  double worst = 0;
  std::string message;
};

/// Compares the gradients of f at `inputs` (float64) with finite differences: for a random projection v of the output, every element of
/// d(f·v)/d(input), or `most` of them evenly spread over each input, against a fourth-order central difference of step `step`.
CheckResult gradcheck(TensorFunction const& f, std::vector<Tensor> const& inputs, double tolerance = 1e-7, double step = 1e-3,
                      std::int64_t most = std::numeric_limits<std::int64_t>::max());

/// The same for second derivatives: gradcheck of (inputs, v) ↦ d(f·v)/d(inputs), where the analytic side differentiates the recorded
/// backward walk and the differences take the ordinary one: kernel and reference are held against each other too.
CheckResult gradgradcheck(TensorFunction const& f, std::vector<Tensor> const& inputs, double tolerance = 1e-6, double step = 1e-3,
                          std::int64_t most = std::numeric_limits<std::int64_t>::max());

/// jvp of f by each real input, along a random direction, against fourth-order central differences of f along it: every element of y.
CheckResult jvpcheck(TensorFunction const& f, std::vector<Tensor> const& inputs, double tolerance = 1e-7, double step = 1e-3);

// ---------------------------------------------------------------- what an operation says of itself, beside its definition

/// A real input to draw: uniform in [low, high).
struct SampleInput {
  Shape shape;
  double low = -2;
  double high = 2;
};

/// One way to call an operation, smooth at the inputs that are drawn.
struct Sample {
  std::vector<SampleInput> inputs;
  TensorFunction call;
  TensorFunction reference = {};  ///< the plain composition, where `call` has kernels
};

/// A call that must fail, and what the message must contain.
struct ErrorCase {
  std::function<void()> call;
  std::string message;
};

/// What is declared beside an operation. Drives the generic suite: gradcheck, gradgradcheck, float32 against float64, kernel against
/// reference, errors.
struct OperationCheck {
  std::string name;
  std::string formula;  ///< for people: "y = tanh x"
  std::vector<Sample> samples;
  std::vector<ErrorCase> errors = {};
  bool differentiable = true;
};

/// The check of a function of one tensor, with samples over [low, high).
OperationCheck unary_check(std::string name, std::string formula, Tensor (*function)(Tensor const&), double low = -2, double high = 2);

/// The check of a function of two tensors, over shapes that broadcast, with samples over the ranges given for each.
OperationCheck binary_check(std::string name, std::string formula, Tensor (*function)(Tensor const&, Tensor const&),
                            SampleInput a = {{}, -2, 2}, SampleInput b = {{}, -2, 2}, bool differentiable = true);

}  // namespace heed
