// Operations that keep no intermediate results: by kernels, with a reference for further derivatives, or by checkpoint() and by_rows().

#include "autograd/graph_memory.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_set>
#include <utility>

#include "autograd/node.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

namespace {

thread_local bool for_second_derivatives_now = false;

using Reference = std::function<Tensor(std::vector<Tensor> const&)>;

/// The function that an operation computes, as a composition of the first `given` inputs; the others are leaves that it holds itself.
struct Composition {
  Reference of;
  std::size_t given = std::numeric_limits<std::size_t>::max();

  /// The arguments of a walk: between the composition and the inputs' own history, so that the walk ends there.
  std::vector<Tensor> arguments(std::vector<Tensor> const& inputs) const {
    std::vector<Tensor> all;
    for (Tensor const& x : inputs) all.push_back(all.size() < given && x.defined() ? alias(x) : x);
    return all;
  }
  Tensor operator()(std::vector<Tensor> const& arguments) const {
    return of({arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(std::min(given, arguments.size()))});
  }
};

/// The elements of `all` that are wanted.
std::vector<Tensor> wanted_of(std::vector<Tensor> const& all, std::vector<bool> const& wanted) {
  std::vector<Tensor> some;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) some.push_back(all[i]);
  return some;
}
/// The inverse: undefined elements where nothing is wanted.
std::vector<Tensor> spread(std::vector<Tensor> const& some, std::vector<bool> const& wanted) {
  std::vector<Tensor> all(wanted.size());
  for (std::size_t i = 0, next = 0; i < wanted.size(); ++i)
    if (wanted[i]) all[i] = some[next++];
  return all;
}

/// A step's inputs and, last, dy.
std::vector<Tensor> with_dy(BackwardContext const& step) {
  std::vector<Tensor> all = step.inputs;
  all.push_back(step.dy);
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

/// The wanted gradients concatenated in one array, and the inverse: undefined where they are not wanted.
Tensor joined(std::vector<Tensor> const& gradients, std::vector<bool> const& wanted) {
  return concatenate(mapped(wanted_of(gradients, wanted), [](Tensor const& g) { return g.viewed({g.elements()}); }), 0);
}
std::vector<Tensor> parted(Tensor const& flat, std::vector<Tensor> const& inputs, std::vector<bool> const& wanted) {
  std::vector<Tensor> parts;
  Index start = 0;
  for (Tensor const& x : wanted_of(inputs, wanted)) {
    parts.push_back(reshape(slice(flat, 0, start, start + x.elements()), {x.shape().begin(), x.shape().end()}));
    start += x.elements();
  }
  return spread(parts, wanted);
}

/// The kernel's gradients, as one operation on the inputs and dy.
std::vector<Tensor> recorded_gradients(char const* operation, BackwardContext const& step, Rule const& kernel, SecondRule const& second,
                                       Composition const& composition) {
  std::vector<Tensor> arguments = with_dy(step);  // before the kernel, which may write to arrays that nothing else holds
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

/// How arrays are cut into chunks: where its flag is set, one has `rows` rows, `at_once` of them in a chunk; the others are whole in each.
struct ChunkLayout {
  Index rows, at_once;
  std::vector<bool> by_rows;

  Tensor chunk(Tensor const& x, std::size_t array, Index first) const {
    if (!by_rows[array]) return x.detach();
    return x.detach().viewed({rows, x.elements() / rows}).rows(first, std::min(at_once, rows - first));
  }
};

Index rows_of(Tensor const& x) { return Shape(std::span(x.shape().begin(), x.rank() - 1)).elements(); }
/// For as many arrays as `arrays`: the first, x, is cut by rows, the others are whole.
ChunkLayout first_by_rows(Tensor const& x, std::size_t arrays) {
  Index const at_once = std::max<Index>(1, by_rows_elements / std::max<Index>(x.size(-1), 1));
  ChunkLayout layout{rows_of(x), at_once, std::vector<bool>(arrays)};
  layout.by_rows[0] = true;
  return layout;
}

/// Chunk by chunk f(the arrays' chunks, first row), which gives a gradient for each of `gradients` that is defined: that of the rows, or
/// added to those of the chunks before. The arrays of these are leaves.
template <class F>
void in_chunks(F const& f, ChunkLayout const& layout, std::vector<Tensor> const& arrays, std::vector<Tensor>& gradients) {
  for (Index first = 0; first < layout.rows; first += layout.at_once) {
    WithGrad const recorded;
    std::vector<Tensor> chunks;
    for (std::size_t i = 0; i < arrays.size(); ++i)
      chunks.push_back(layout.chunk(arrays[i], i, first).set_requires_grad(gradients[i].defined()));
    std::vector<Tensor> const found = f(chunks, first);
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (!gradients[i].defined()) continue;
      Tensor part = layout.chunk(gradients[i], i, first);
      layout.by_rows[i] ? copy_elements(found[i], part) : kernels::add_in_place(part, found[i]);
    }
  }
}

/// Zeros in the shapes of the wanted arrays.
std::vector<Tensor> zeros_of(std::vector<Tensor> const& arrays, std::vector<bool> const& wanted) {
  std::vector<Tensor> zeros(arrays.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) zeros[i] = Tensor::zeros(arrays[i].shape(), arrays[i].dtype());
  return zeros;
}

/// The gradients of derivative(dy, x), a function of each element alone, block by block.
std::vector<Tensor> in_blocks(Reference const& formula, BackwardContext const& step) {
  std::vector<Tensor> gradients(step.inputs.size() + 1);
  for (std::size_t i = 0; i < step.inputs.size(); ++i)
    if (step.wanted[i]) gradients[i] = i == 0 && step.may_reuse_dy() ? step.dy : Tensor(step.dy.shape(), step.dy.dtype());
  ChunkLayout const layout{step.dy.elements(), by_rows_elements, std::vector<bool>(gradients.size(), true)};
  auto const derivatives = [&](std::vector<Tensor> const& chunks, Index) {
    std::vector<Tensor> const leaves(chunks.begin(), chunks.end() - 1);
    Tensor const& dy = chunks.back();
    std::vector<Tensor> found = spread(grad({formula(leaves)}, wanted_of(leaves, step.wanted), {dy}), step.wanted);
    for (std::size_t i = 0; i < found.size(); ++i)
      if (step.wanted[i]) found[i] = zero_where_unused(i == 0 ? dy : leaves[0].detach(), found[i]);  // linear in both
    return found;
  };
  in_chunks(derivatives, layout, with_dy(step), gradients);
  gradients.pop_back();
  return gradients;
}

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

Tensor record_fused(char const* operation, std::vector<Tensor> inputs, Tensor value, Keep keep, Rule kernel, Reference reference,
                    SecondRule second) {
  keep.inputs = all_inputs;  // the reference needs them all
  return record(
      operation, std::move(inputs), std::move(value), keep,
      [operation, kernel = std::move(kernel), second = std::move(second), reference = std::move(reference)](BackwardContext const& step) {
        return recording() ? recorded_gradients(operation, step, kernel, second, {reference}) : kernel(step);
      });
}

std::vector<Tensor> second_by_rows(SomeRows const& of, BackwardContext const& step, std::vector<Tensor> const& u, Index at_once) {
  std::vector<Tensor> const arrays = with_dy(step);
  ChunkLayout layout = first_by_rows(step.x(), arrays.size());
  if (at_once > 0) layout.at_once = at_once;
  layout.by_rows.back() = step.dy.rank() > 0;
  std::vector<bool> const there = mapped(arrays, &Tensor::defined);
  std::vector<Tensor> result = zeros_of(arrays, there);
  auto const derivatives = [&](std::vector<Tensor> const& leaves, Index first) {
    std::vector<Tensor> seeds, differentiated;
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      if (!u[i].defined()) continue;
      differentiated.push_back(leaves[i]);
      seeds.push_back(layout.chunk(u[i], i, first));
    }
    std::vector<Tensor> const inputs(leaves.begin(), leaves.end() - 1);
    return spread(grad(grad({of(inputs, first)}, differentiated, {leaves.back()}, true), wanted_of(leaves, there), seeds), there);
  };
  in_chunks(derivatives, layout, arrays, result);
  return result;
}

Tensor record_derivative(char const* operation, Tensor const& dy, Tensor const& x, Tensor value,
                         std::function<Tensor(Tensor const& dy, Tensor const& x)> derivative) {
  Reference formula = [derivative = std::move(derivative)](std::vector<Tensor> const& in) { return derivative(in[0], in[1]); };
  return record_fused(
      operation, {dy, x}, std::move(value), keep_nothing, [formula](BackwardContext const& s) { return in_blocks(formula, s); }, formula);
}

bool for_second_derivatives() { return for_second_derivatives_now; }
ForSecondDerivatives::ForSecondDerivatives() : Temporarily(for_second_derivatives_now, true) {}

Tensor by_rows(Reference const& f, std::vector<Tensor> const& inputs) {
  ChunkLayout const layout = first_by_rows(inputs[0], inputs.size());
  if (layout.rows <= layout.at_once) return f(inputs);
  std::vector<Tensor> parts, none(inputs.size());
  auto const values = [&](std::vector<Tensor> const& chunks, Index) {
    NoGrad const no_grad;
    parts.push_back(f(chunks));
    return none;
  };
  in_chunks(values, layout, inputs, none);
  Tensor value = concatenate(std::exchange(parts, {}), 0);
  Shape shape = inputs[0].shape();
  shape.set(-1, value.size(-1));
  auto const first = [f](BackwardContext const& step) {
    std::vector<Tensor> const arrays = with_dy(step);
    ChunkLayout both = first_by_rows(step.x(), arrays.size());
    both.by_rows.back() = true;
    std::vector<Tensor> gradients = zeros_of(arrays, step.wanted);
    auto const derivatives = [&](std::vector<Tensor> const& chunks, Index) {
      std::vector<Tensor> const leaves(chunks.begin(), chunks.end() - 1);
      return spread(grad({f(leaves)}, wanted_of(leaves, step.wanted), {chunks.back()}), step.wanted);
    };
    in_chunks(derivatives, both, arrays, gradients);
    gradients.pop_back();
    return gradients;
  };
  return record_fused("by_rows", inputs, value.viewed(shape), keep_inputs, first, f,
                      [f](BackwardContext const& step, std::vector<Tensor> const& u) {
                        return second_by_rows([&](std::vector<Tensor> const& in, Index) { return f(in); }, step, u);
                      });
}

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
