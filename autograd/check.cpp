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

/// Takes an error into the result, `message()` says where it is. Returns whether to go on: not after a NaN or an infinity.
template <class Message>
bool note(CheckResult& result, double found, double difference, double tolerance, Message const& message) {
  double const error = std::abs(found - difference) / std::max(1.0, std::abs(difference));
  if (error <= result.worst) return true;  // a NaN is not ≤ and ends up below
  result = {error <= tolerance, error, message()};
  return std::isfinite(error);
}

/// A scalar function of arrays and its gradient, compared element by element, or at `max_elements` elements of each.
CheckResult compare(std::function<double(std::vector<Tensor> const&)> const& value, std::vector<Tensor> const& inputs,
                    std::vector<Tensor> const& gradients, double tolerance, double step, Index max_elements) {
  CheckResult result;
  std::size_t next = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() == DType::int64) continue;
    Tensor const& gradient = gradients[next++];
    Index const stride = std::max<Index>(1, (inputs[i].elements() - 1) / max_elements + 1);
    for (Index j = 0; j < inputs[i].elements(); j += stride) {
      auto const at = [&](double shift) {
        std::vector<Tensor> moved = inputs;
        moved[i] = inputs[i].clone();
        heed::at(moved[i].mutable_data<double>(), j) += shift;
        return value(moved);
      };
      double const difference = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step);
      double const analytic = gradient.at(j);
      auto const message = [&] {
        return fmt::format("input {} {}, element {}: gradient {:.12g}, finite difference {:.12g}", i, to_string(inputs[i].shape()), j,
                           analytic, difference);
      };
      if (!note(result, analytic, difference, tolerance, message)) return result;
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

CheckResult jvpcheck(TensorFunction const& f, std::vector<Tensor> const& inputs, double tolerance, double step) {
  CheckResult result;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() == DType::int64) continue;
    Tensor const v = projection(inputs[i].shape(), "jvpcheck");
    auto const of = [&](Tensor const& x) {
      std::vector<Tensor> moved = inputs;
      moved[i] = x;
      return f(moved);
    };
    Tensor const along = jvp(of, inputs[i], v);
    NoGrad const no_grad;
    auto const apart = [&](double shift) { return of(inputs[i] + scale(v, shift)) - of(inputs[i] - scale(v, shift)); };
    Tensor const difference = scale(scale(apart(step), 8) - apart(2 * step), 1 / (12 * step));
    for (Index j = 0; j < difference.elements(); ++j) {
      auto const message = [&] {
        return fmt::format("along input {}, element {}: jvp {:.12g}, finite difference {:.12g}", i, j, along.at(j), difference.at(j));
      };
      if (!note(result, along.at(j), difference.at(j), tolerance, message)) return result;
    }
  }
  return result;
}

}  // namespace heed
