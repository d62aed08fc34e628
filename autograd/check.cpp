#include "autograd/check.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/random.hpp"

namespace heed {

namespace {

std::vector<Tensor> leaves_at(std::vector<Tensor> const& inputs) {
  std::vector<Tensor> leaves;
  for (Tensor const& input : inputs) {
    leaves.push_back(input.detach());
    if (input.dtype() != DType::int64) leaves.back().set_requires_grad();
  }
  return leaves;
}

std::vector<Tensor> differentiable(std::vector<Tensor> const& leaves) {
  std::vector<Tensor> chosen;
  std::ranges::copy_if(leaves, std::back_inserter(chosen), [](Tensor const& leaf) { return leaf.requires_grad(); });
  return chosen;
}

/// A scalar function of arrays and its gradient, compared element by element, or at `max_elements` elements of each.
CheckResult compare(std::function<double(std::vector<Tensor> const&)> const& value, std::vector<Tensor> const& inputs,
                    std::vector<Tensor> const& gradients, double tolerance, double step, Index max_elements) {
  CheckResult result;
  std::size_t next = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() == DType::int64) continue;
    Tensor const& gradient = gradients[next++];
    Index const stride = ((inputs[i].elements() - 1) / max_elements + 1) | 1;  // odd: of a matrix of even width not one column alone
    for (Index j = 0; j < inputs[i].elements(); j += stride) {
      auto const at = [&](double shift) {
        std::vector<Tensor> moved = inputs;
        moved[i] = inputs[i].clone();
        heed::at(moved[i].mutable_data<double>(), j) += shift;
        return value(moved);
      };
      double const difference = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step);
      double const analytic = gradient.at(j);
      double const error = std::abs(analytic - difference) / std::max(1.0, std::abs(difference));
      if (error <= result.worst) continue;  // a NaN is not ≤
      result = {error <= tolerance, error,
                fmt::format("input {} {}, element {}: gradient {:.12g}, finite difference {:.12g}", i, to_string(inputs[i].shape()), j,
                            analytic, difference)};
      if (!std::isfinite(error)) return result;
    }
  }
  return result;
}

/// Random weights in the output's shape: one number instead of a Jacobian's row each.
Tensor projection(Shape const& shape, std::string_view purpose) { return Tensor::normal(shape, Stream(7, purpose), DType::float64); }

}  // namespace

CheckResult gradcheck(TensorFunction const& f, std::vector<Tensor> const& inputs, double tolerance, double step, Index max_elements) {
  WithGrad const recorded;
  std::vector<Tensor> const leaves = leaves_at(inputs);
  Tensor const y = f(leaves);
  Tensor const v = projection(y.shape(), "gradcheck");
  std::vector<Tensor> const chosen = differentiable(leaves);
  if (!y.requires_grad()) return {false, 0, "the output does not depend on any input that wants a gradient"};
  std::vector<Tensor> const gradients = grad({y}, chosen, {v});
  auto const value = [&](std::vector<Tensor> const& at) {
    NoGrad const no_grad;
    return sum(f(at) * v).item();
  };
  return compare(value, inputs, gradients, tolerance, step, max_elements);
}

CheckResult gradgradcheck(TensorFunction const& f, std::vector<Tensor> const& inputs, double tolerance, double step, Index max_elements) {
  // (inputs, v) ↦ d(f·v)/d(inputs), projected to one number with random weights w.
  WithGrad const recorded;
  std::vector<Tensor> const leaves = leaves_at(inputs);
  Tensor const y = f(leaves);
  if (!y.requires_grad()) return {false, 0, "the output does not depend on any input that wants a gradient"};
  Tensor v = projection(y.shape(), "gradgradcheck");
  auto const projected = [&](std::vector<Tensor> const& at, Tensor const& seed, bool create_graph) {
    std::vector<Tensor> const own = create_graph ? at : leaves_at(at);
    std::vector<Tensor> const chosen = differentiable(own);
    std::vector<Tensor> const first = grad({f(own)}, chosen, {seed}, create_graph);
    Tensor total = Tensor::scalar(0, DType::float64);
    for (std::size_t i = 0; i < first.size(); ++i) total = total + sum(first[i] * projection(first[i].shape(), fmt::format("w{}", i)));
    return total;
  };
  v.set_requires_grad();
  Tensor const total = projected(leaves, v, true);
  std::vector<Tensor> wanted = differentiable(leaves);
  wanted.push_back(v);
  std::vector<Tensor> const gradients = grad({total}, wanted);
  std::vector<Tensor> all = inputs;
  all.push_back(v.detach());
  auto const value = [&](std::vector<Tensor> const& at) { return projected({at.begin(), at.end() - 1}, at.back(), false).item(); };
  return compare(value, all, gradients, tolerance, step, max_elements);
}

}  // namespace heed
