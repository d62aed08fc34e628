#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

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
/// projection v of the output, for every element of each input, or for `max_elements` evenly spaced ones.
CheckResult gradcheck(TensorFunction const& f, std::vector<Tensor> const& inputs, double tolerance = 1e-7, double step = 1e-3,
                      Index max_elements = std::numeric_limits<Index>::max());

/// Second derivatives: gradcheck of (inputs, v) ↦ d(f·v)/d(inputs). The analytic side differentiates the recorded backward pass, the
/// differences use the ordinary one, so that kernel and reference are compared too.
CheckResult gradgradcheck(TensorFunction const& f, std::vector<Tensor> const& inputs, double tolerance = 1e-6, double step = 1e-3,
                          Index max_elements = std::numeric_limits<Index>::max());

}  // namespace heed
