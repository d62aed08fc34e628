// Operations that kernels compute: which derivative is a kernel's, and which the reference's.

#include <algorithm>
#include <span>
#include <utility>

#include "autograd/graph.hpp"
#include "autograd/kernels/accumulate.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/node.hpp"
#include "autograd/operations/elementwise.hpp"
#include "autograd/operations/reduce.hpp"
#include "autograd/operations/shape.hpp"

namespace heed {

namespace {

constexpr std::int64_t block_elements = std::int64_t{1} << 15;

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

/// The derivatives of Σ_i u_i·g_i by the inputs and dy, as a graph if the walk records: `step` is that of the gradients, its last input dy.
std::vector<Tensor> second_by(Reference const& reference, Step const& step, std::vector<bool> const& wanted, std::vector<Tensor> const& u) {
  bool const again = recording();
  WithGrad const recorded;
  std::vector<Tensor> const aliases = aliases_of(step.inputs);
  std::vector<Tensor> const inputs(aliases.begin(), aliases.end() - 1);
  std::vector<Tensor> const g = grad_within(reference(inputs), wanted_of(inputs, wanted), aliases.back(), true);
  std::vector<Tensor> const some = wanted_of(u, wanted);
  Tensor total = Tensor::scalar(0, step.dy.dtype());
  for (std::size_t i = 0; i < g.size(); ++i) total = total + sum(g[i] * some[i]);
  return spread(grad_within(total, wanted_of(aliases, step.wanted), Tensor::ones({}, total.dtype()), again), step.wanted);
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
        if (recording() || !second) return second_by(reference, s, wanted, u);
        return second({s.inputs.back(), inputs, s.y, wanted}, u);
      });
  return parted(flat, step.inputs, step.wanted);
}

}  // namespace

Tensor record_fused(char const* operation, std::vector<Tensor> inputs, Tensor value, Keep keep, Rule kernel, Reference reference,
                    SecondRule second) {
  keep.inputs = ~0U;  // the reference needs them all
  return record(operation, std::move(inputs), std::move(value), keep,
                [operation, kernel = std::move(kernel), second = std::move(second), reference = std::move(reference)](Step const& step) {
                  return recording() ? recorded_gradients(operation, step, kernel, second, reference) : kernel(step);
                });
}

std::vector<Tensor> second_by_rows(SomeRows const& of, Step const& step, std::vector<Tensor> const& u, std::int64_t at_once) {
  Shape const& shape = step.x().shape();
  std::int64_t const rows = Shape(std::span(shape.begin(), shape.rank() - 1)).elements();
  if (at_once == 0) at_once = std::max<std::int64_t>(1, block_elements / std::max<std::int64_t>(shape[-1], 1));
  bool const dy_by_rows = step.dy.rank() > 0;
  std::vector<Tensor> result;
  for (Tensor const& x : step.inputs) result.push_back(Tensor::zeros(x.shape(), x.dtype()));
  result.push_back(Tensor::zeros(step.dy.shape(), step.dy.dtype()));
  auto const by_rows = [&](std::size_t i) { return i == 0 || (i == step.inputs.size() && dy_by_rows); };
  for (std::int64_t first = 0; first < rows; first += at_once) {
    WithGrad const recorded;
    std::int64_t const count = std::min(at_once, rows - first);
    auto const some = [&](Tensor const& x) { return x.detach().viewed({rows, x.elements() / rows}).rows(first, count); };
    auto const leaf = [&](Tensor const& x, std::size_t i) { return (by_rows(i) ? some(x) : x.detach()).set_requires_grad(); };
    std::vector<Tensor> leaves, seeds, differentiated;
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      leaves.push_back(leaf(step.x(i), i));
      if (!u[i].defined()) continue;
      differentiated.push_back(leaves.back());
      seeds.push_back(by_rows(i) ? some(u[i]) : u[i].detach());
    }
    leaves.push_back(leaf(step.dy, step.inputs.size()));
    std::vector<Tensor> const inputs(leaves.begin(), leaves.end() - 1);
    std::vector<Tensor> gradients = grad({of(inputs, first)}, differentiated, {leaves.back()}, true);
    std::vector<Tensor> const found = grad(std::move(gradients), leaves, seeds);
    for (std::size_t i = 0; i < result.size(); ++i) {
      Tensor part = by_rows(i) ? result[i].viewed({rows, result[i].elements() / rows}).rows(first, count) : result[i];
      kernels::add_in_place(part, found[i]);
    }
  }
  return result;
}

namespace {

/// The gradients of a function of each element alone, block by block.
std::vector<Tensor> in_blocks(Reference const& formula, Step const& step) {
  std::int64_t const elements = step.dy.elements();
  std::vector<Tensor> gradients(step.inputs.size());
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (step.wanted[i]) gradients[i] = Tensor({elements}, step.dy.dtype());
  auto const part = [&](Tensor const& x, std::int64_t first) {
    return slice(x.detach().viewed({elements}), 0, first, std::min(first + block_elements, elements));
  };
  for (std::int64_t first = 0; first < elements; first += block_elements) {
    WithGrad const recorded;
    std::vector<Tensor> leaves;
    for (Tensor const& x : step.inputs) leaves.push_back(part(x, first).set_requires_grad());
    std::vector<Tensor> const wanted = wanted_of(leaves, step.wanted);
    std::vector<Tensor> const found = spread(grad({formula(leaves)}, wanted, {part(step.dy, first)}), step.wanted);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!step.wanted[i]) continue;
      kernels::with_real(step.dy.dtype(), [&](auto type) {
        std::ranges::copy(found[i].data<decltype(type)>(), gradients[i].mutable_data<decltype(type)>().begin() + first);
      });
    }
  }
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (step.wanted[i]) gradients[i] = gradients[i].viewed(step.x(i).shape());
  return gradients;
}

}  // namespace

Tensor record_derivative(char const* operation, Tensor const& dy, Tensor const& x, Tensor value,
                         std::function<Tensor(Tensor const& dy, Tensor const& x)> derivative) {
  Reference formula = [derivative = std::move(derivative)](std::vector<Tensor> const& in) { return derivative(in[0], in[1]); };
  return record_fused(
      operation, {dy, x}, std::move(value), keep_nothing, [formula](Step const& s) { return in_blocks(formula, s); }, formula);
}

}  // namespace heed
