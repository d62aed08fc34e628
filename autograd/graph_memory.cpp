// Operations that keep nothing of what is between: those that kernels compute, with a reference for the derivatives that no kernel has;
// checkpoint() and by_rows(), which are their own references.

#include "autograd/graph_memory.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_set>
#include <utility>

#include "autograd/kernels/accumulate.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/node.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

namespace {

using Reference = std::function<Tensor(std::vector<Tensor> const&)>;

/// The function that an operation computes, as a composition of the first `given` inputs; the others are leaves that it holds itself.
struct Composition {
  Reference of;
  std::size_t given = std::numeric_limits<std::size_t>::max();

  /// The arguments of a walk: between the composition and the inputs' own history, so that the walk ends there.
  std::vector<Tensor> arguments(std::vector<Tensor> const& inputs) const {
    std::vector<Tensor> all;
    for (Tensor const& x : inputs) all.push_back(all.size() < given ? alias(x) : x);
    return all;
  }
  Tensor operator()(std::vector<Tensor> const& arguments) const {
    return of({arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(std::min(given, arguments.size()))});
  }
};

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
std::vector<Tensor> second_by(Composition const& composition, BackwardContext const& step, std::vector<bool> const& wanted,
                              std::vector<Tensor> const& u) {
  bool const again = recording();
  WithGrad const recorded;
  std::vector<Tensor> all = composition.arguments({step.inputs.begin(), step.inputs.end() - 1});
  std::vector<Tensor> const inputs = all;
  all.push_back(alias(step.inputs.back()));
  std::vector<Tensor> g = grad_within({composition(inputs)}, wanted_of(inputs, wanted), {all.back()}, true);
  return spread(grad_within(std::move(g), wanted_of(all, step.wanted), wanted_of(u, wanted), again), step.wanted);
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
std::vector<Tensor> recorded_gradients(char const* operation, BackwardContext const& step, Rule const& kernel, SecondRule const& second,
                                       Composition const& composition) {
  std::vector<Tensor> arguments = step.inputs;
  arguments.push_back(step.dy);
  Tensor value;
  {
    NoGrad const no_grad;
    value = joined(kernel(step), step.wanted);
  }
  Tensor const flat = record(operation, std::move(arguments), std::move(value), keep_inputs,
                             [second, composition, wanted = step.wanted](BackwardContext const& s) {
                               std::vector<Tensor> const inputs(s.inputs.begin(), s.inputs.end() - 1);
                               std::vector<Tensor> const u = parted(s.dy, inputs, wanted);
                               if (recording() || !second) return second_by(composition, s, wanted, u);
                               return second({s.inputs.back(), inputs, s.y, wanted}, u);
                             });
  return parted(flat, step.inputs, step.wanted);
}

}  // namespace

Tensor record_fused(char const* operation, std::vector<Tensor> inputs, Tensor value, Keep keep, Rule kernel, Reference reference,
                    SecondRule second) {
  keep.inputs = ~0U;  // the reference needs them all
  return record(
      operation, std::move(inputs), std::move(value), keep,
      [operation, kernel = std::move(kernel), second = std::move(second), reference = std::move(reference)](BackwardContext const& step) {
        return recording() ? recorded_gradients(operation, step, kernel, second, {reference}) : kernel(step);
      });
}

namespace {

std::int64_t rows_of(Tensor const& x) { return Shape(std::span(x.shape().begin(), x.rank() - 1)).elements(); }
std::int64_t rows_at_once(Tensor const& x) { return std::max<std::int64_t>(1, by_rows_elements / std::max<std::int64_t>(x.size(-1), 1)); }
/// `count` rows of x, which has `rows`, from `first` on: [count, the rest].
Tensor some_rows(Tensor const& x, std::int64_t rows, std::int64_t first, std::int64_t count) {
  return x.detach().viewed({rows, x.elements() / rows}).rows(first, count);
}

}  // namespace

std::vector<Tensor> second_by_rows(SomeRows const& of, BackwardContext const& step, std::vector<Tensor> const& u, std::int64_t at_once) {
  std::int64_t const rows = rows_of(step.x());
  if (at_once == 0) at_once = rows_at_once(step.x());
  bool const dy_by_rows = step.dy.rank() > 0;
  std::vector<Tensor> result;
  for (Tensor const& x : step.inputs) result.push_back(Tensor::zeros(x.shape(), x.dtype()));
  result.push_back(Tensor::zeros(step.dy.shape(), step.dy.dtype()));
  auto const has_rows = [&](std::size_t i) { return i == 0 || (i == step.inputs.size() && dy_by_rows); };
  for (std::int64_t first = 0; first < rows; first += at_once) {
    WithGrad const recorded;
    std::int64_t const count = std::min(at_once, rows - first);
    auto const some = [&](Tensor const& x) { return some_rows(x, rows, first, count); };
    auto const leaf = [&](Tensor const& x, std::size_t i) { return (has_rows(i) ? some(x) : x.detach()).set_requires_grad(); };
    std::vector<Tensor> leaves, seeds, differentiated;
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      leaves.push_back(leaf(step.x(i), i));
      if (!u[i].defined()) continue;
      differentiated.push_back(leaves.back());
      seeds.push_back(has_rows(i) ? some(u[i]) : u[i].detach());
    }
    leaves.push_back(leaf(step.dy, step.inputs.size()));
    std::vector<Tensor> const inputs(leaves.begin(), leaves.end() - 1);
    std::vector<Tensor> gradients = grad({of(inputs, first)}, differentiated, {leaves.back()}, true);
    std::vector<Tensor> const found = grad(std::move(gradients), leaves, seeds);
    for (std::size_t i = 0; i < result.size(); ++i) {
      Tensor part = has_rows(i) ? some(result[i]) : result[i];
      kernels::add_in_place(part, found[i]);
    }
  }
  return result;
}

namespace {

/// The gradients of derivative(dy, x), a function of each element alone, block by block.
std::vector<Tensor> in_blocks(Reference const& formula, BackwardContext const& step) {
  std::int64_t const elements = step.dy.elements();
  std::vector<Tensor> gradients(step.inputs.size());
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (step.wanted[i]) gradients[i] = i == 0 && step.may_reuse_dy() ? step.dy.viewed({elements}) : Tensor({elements}, step.dy.dtype());
  auto const part = [&](Tensor const& x, std::int64_t first) {
    return slice(x.detach().viewed({elements}), 0, first, std::min(first + by_rows_elements, elements));
  };
  for (std::int64_t first = 0; first < elements; first += by_rows_elements) {
    WithGrad const recorded;
    std::vector<Tensor> leaves;
    for (Tensor const& x : step.inputs) leaves.push_back(part(x, first).set_requires_grad());
    std::vector<Tensor> const wanted = wanted_of(leaves, step.wanted);
    Tensor const dy = part(step.dy, first);
    std::vector<Tensor> const found = spread(grad({formula(leaves)}, wanted, {dy}), step.wanted);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!step.wanted[i]) continue;
      Tensor const counted = of_what_counts(i == 0 ? dy : leaves[0].detach(), found[i]);  // linear in both
      kernels::with_real(step.dy.dtype(), [&](auto type) {
        std::ranges::copy(counted.data<decltype(type)>(), gradients[i].mutable_data<decltype(type)>().begin() + first);
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
      operation, {dy, x}, std::move(value), keep_nothing, [formula](BackwardContext const& s) { return in_blocks(formula, s); }, formula);
}

Tensor by_rows(Reference const& f, std::vector<Tensor> const& inputs) {
  std::int64_t const rows = rows_of(inputs[0]), at_once = rows_at_once(inputs[0]);
  if (rows <= at_once) return f(inputs);
  std::vector<Tensor> parts;
  {
    NoGrad const values;
    for (std::int64_t first = 0; first < rows; first += at_once) {
      std::vector<Tensor> some = inputs;
      some[0] = some_rows(inputs[0], rows, first, std::min(at_once, rows - first));
      parts.push_back(f(some));
    }
  }
  Tensor value = concatenate(std::exchange(parts, {}), 0);
  Shape shape = inputs[0].shape();
  shape.set(-1, value.size(-1));
  auto const first_by_rows = [f, rows, at_once](BackwardContext const& step) {
    std::vector<Tensor> gradients(step.inputs.size());
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (step.wants(i)) gradients[i] = Tensor::zeros(step.x(i).shape(), step.dy.dtype());
    for (std::int64_t first = 0; first < rows; first += at_once) {
      WithGrad const recorded;
      auto const some = [&](Tensor const& x) { return some_rows(x, rows, first, std::min(at_once, rows - first)); };
      std::vector<Tensor> leaves;
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        leaves.push_back(i == 0 ? some(step.x(0)) : step.x(i).detach());
        if (step.wants(i)) leaves.back().set_requires_grad();
      }
      std::vector<Tensor> const found = spread(grad({f(leaves)}, wanted_of(leaves, step.wanted), {some(step.dy)}), step.wanted);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (!step.wants(i)) continue;
        Tensor part = i == 0 ? some(gradients[0]) : gradients[i];
        kernels::add_in_place(part, found[i]);
      }
    }
    return gradients;
  };
  return record_fused("by_rows", inputs, value.viewed(shape), keep_inputs, first_by_rows, f,
                      [f](BackwardContext const& step, std::vector<Tensor> const& u) {
                        return second_by_rows([&](std::vector<Tensor> const& in, std::int64_t) { return f(in); }, step, u);
                      });
}

namespace {

/// The leaves that f holds: found in the graph of one run, whose value is `value`.
std::vector<Tensor> leaves_held(Composition const& f, std::vector<Tensor> const& inputs, Tensor& value) {
  std::vector<Tensor> const arguments = f.arguments(inputs);
  Tensor const y = f(arguments);
  value = y.detach();
  std::unordered_set<Node const*> seen;
  for (Tensor const& x : arguments) seen.insert(x.node().get());
  std::vector<Tensor> stack{y}, leaves;
  while (!stack.empty()) {
    Tensor const next = std::move(stack.back());
    stack.pop_back();
    if (!next.node() || !seen.insert(next.node().get()).second) continue;
    if (next.node()->is_leaf()) leaves.push_back(next);
    for (Tensor const& input : next.node()->inputs) stack.push_back(input);
  }
  return leaves;
}

}  // namespace

Tensor checkpoint(Reference const& f, std::vector<Tensor> const& inputs) {
  if (!recording()) return f(inputs);
  Composition const composition{f, inputs.size()};
  std::vector<Tensor> all = inputs;
  Tensor value;
  for (Tensor const& leaf : leaves_held(composition, inputs, value)) all.push_back(leaf);
  Rule const by_running_again = [composition](BackwardContext const& step) {
    WithGrad const recorded;
    std::vector<Tensor> const arguments = composition.arguments(step.inputs);
    return spread(grad_within({composition(arguments)}, wanted_of(arguments, step.wanted), {step.dy}, false), step.wanted);
  };
  return record("checkpoint", std::move(all), std::move(value), keep_inputs, [composition, by_running_again](BackwardContext const& step) {
    return recording() ? recorded_gradients("checkpoint", step, by_running_again, {}, composition) : by_running_again(step);
  });
}

}  // namespace heed
