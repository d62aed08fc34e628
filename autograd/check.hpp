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

/// The outcome of a check: the largest error, relative to max(1, |value|), and where it occurs; `ok` if it is within the tolerance.
struct CheckResult {
  bool ok = true;
  double worst = 0;
  std::string message;
};

/// Compares the gradients of f at `inputs` (float64) with fourth-order central differences of step `step`: d(f·v)/d(input) for a random
/// projection v of the output, for every element of each input, or for `most` evenly spaced ones.
CheckResult gradcheck(TensorFunction const& f, std::vector<Tensor> const& inputs, double tolerance = 1e-7, double step = 1e-3,
                      std::int64_t most = std::numeric_limits<std::int64_t>::max());

/// Second derivatives: gradcheck of (inputs, v) ↦ d(f·v)/d(inputs). The analytic side differentiates the recorded backward pass, the
/// differences use the ordinary one, so that kernel and reference are compared too.
CheckResult gradgradcheck(TensorFunction const& f, std::vector<Tensor> const& inputs, double tolerance = 1e-6, double step = 1e-3,
                          std::int64_t most = std::numeric_limits<std::int64_t>::max());

/// Compares jvp of f by each real input, along a random direction, with fourth-order central differences of f: every element of y.
CheckResult jvpcheck(TensorFunction const& f, std::vector<Tensor> const& inputs, double tolerance = 1e-7, double step = 1e-3);

// ---------------------------------------------------------------- declared beside each operation

/// A random real input, uniform in [low, high).
struct SampleInput {
  Shape shape;
  double low = -2;
  double high = 2;
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

/// Declared beside an operation. Drives the generic suite: gradcheck, gradgradcheck, float32 against float64, kernel against reference,
/// errors.
struct OperationCheck {
  std::string name;
  std::string formula;  ///< "y = tanh x"
  std::vector<Sample> samples;
  std::vector<ErrorCase> errors = {};
  bool differentiable = true;
};
extern template void Registry<OperationCheck>::add(OperationCheck);  // compiled once

/// The check of a function of one tensor, with samples over [low, high).
OperationCheck unary_check(std::string name, std::string formula, Tensor (*function)(Tensor const&), double low = -2, double high = 2);

/// The check of a function of two tensors, over shapes that broadcast, with samples in the given ranges.
OperationCheck binary_check(std::string name, std::string formula, Tensor (*function)(Tensor const&, Tensor const&),
                            SampleInput a = {{}, -2, 2}, SampleInput b = {{}, -2, 2}, bool differentiable = true);

}  // namespace heed
