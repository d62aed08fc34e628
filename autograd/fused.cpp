// Operations that kernels compute: which derivative is a kernel's, and which the reference's.

#include <algorithm>
#include <utility>

#include "autograd/graph.hpp"
#include "autograd/node.hpp"
#include "autograd/operations/elementwise.hpp"
#include "autograd/operations/reduce.hpp"
#include "autograd/operations/shape.hpp"

namespace heed {

namespace {

using Reference = std::function<Tensor(std::vector<Tensor> const&)>;

/// Between a reference and the inputs' own history, so that a walk ends at the arguments.
std::vector<Tensor> aliases_of(std::vector<Tensor> const& inputs) {
  std::vector<Tensor> aliases;
  for (Tensor const& x : inputs) aliases.push_back(alias(x));
  return aliases;
}

/// Of `all`, those that are wanted.
std::vector<Tensor> wanted_of(std::vector<Tensor> const& all, std::vector<bool> const& wanted) {
  std::vector<Tensor> some;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) some.push_back(all[i]);
  return some;
}
/// And back: undefined where they are not.
std::vector<Tensor> spread(std::vector<Tensor> const& some, std::vector<bool> const& wanted) {
  std::vector<Tensor> all(wanted.size());
  for (std::size_t i = 0, next = 0; i < wanted.size(); ++i)
    if (wanted[i]) all[i] = some[next++];
  return all;
}

/// The gradients of the reference, as a graph.
std::vector<Tensor> gradients_by(Reference const& reference, Step const& step) {
  std::vector<Tensor> const aliases = aliases_of(step.inputs);
  return spread(grad_within(reference(aliases), wanted_of(aliases, step.wanted), step.dy, true), step.wanted);
}

/// The derivatives of Σ_i u_i·g_i by the inputs and dy, as a graph: `step` is that of the gradients, its last input dy.
std::vector<Tensor> second_by(Reference const& reference, Step const& step, std::vector<bool> const& wanted, std::vector<Tensor> const& u) {
  std::vector<Tensor> const aliases = aliases_of(step.inputs);
  std::vector<Tensor> const inputs(aliases.begin(), aliases.end() - 1);
  std::vector<Tensor> const g = grad_within(reference(inputs), wanted_of(inputs, wanted), aliases.back(), true);
  std::vector<Tensor> const some = wanted_of(u, wanted);
  Tensor total = Tensor::scalar(0, step.dy.dtype());
  for (std::size_t i = 0; i < g.size(); ++i) total = total + sum(g[i] * some[i]);
  return spread(grad_within(total, wanted_of(aliases, step.wanted), Tensor::ones({}, total.dtype()), true), step.wanted);
}

/// The wanted gradients one after another in one array, and apart again: undefined where they are not wanted.
Tensor joined(std::vector<Tensor> const& gradients, std::vector<bool> const& wanted) {
  std::vector<Tensor> flat;
  for (Tensor const& g : wanted_of(gradients, wanted)) flat.push_back(g.viewed({g.elements()}));
  return concatenate(flat, 0);
}
std::vector<Tensor> parted(Tensor const& flat, std::vector<Tensor> const& inputs, std::vector<bool> const& wanted) {
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (Tensor const& x : wanted_of(inputs, wanted)) {
    parts.push_back(reshape(slice(flat, 0, start, start + x.elements()), {x.shape().begin(), x.shape().end()}));
    start += x.elements();
  }
  return spread(parts, wanted);
}

/// The kernel's gradients, as one operation on the inputs and dy.
std::vector<Tensor> recorded_gradients(char const* operation, Step const& step, Rule const& kernel, SecondRule const& second,
                                       Reference const& reference) {
  std::vector<Tensor> arguments = step.inputs;
  arguments.push_back(step.dy);
  Tensor value;
  {
    NoGrad const no_grad;
    value = joined(kernel(step), step.wanted);
  }
  Tensor const flat =
      record(operation, std::move(arguments), std::move(value), keep_inputs, [second, reference, wanted = step.wanted](Step const& s) {
        std::vector<Tensor> const inputs(s.inputs.begin(), s.inputs.end() - 1);
        std::vector<Tensor> const u = parted(s.dy, inputs, wanted);
        if (recording()) return second_by(reference, s, wanted, u);
        return second({s.inputs.back(), inputs, s.y, wanted}, u);
      });
  return parted(flat, step.inputs, step.wanted);
}

}  // namespace

Tensor record_fused(char const* operation, std::vector<Tensor> inputs, Tensor value, Keep keep, Rule kernel, Reference reference) {
  keep.inputs = ~0U;  // the reference needs them all
  return record(operation, std::move(inputs), std::move(value), keep,
                [kernel = std::move(kernel), reference = std::move(reference)](Step const& step) {
                  return recording() ? gradients_by(reference, step) : kernel(step);
                });
}

Tensor record_fused(char const* operation, std::vector<Tensor> inputs, Tensor value, Rule kernel, SecondRule second, Reference reference) {
  return record(operation, std::move(inputs), std::move(value), keep_inputs,
                [operation, kernel = std::move(kernel), second = std::move(second), reference = std::move(reference)](Step const& step) {
                  return recording() ? recorded_gradients(operation, step, kernel, second, reference) : kernel(step);
                });
}

}  // namespace heed
