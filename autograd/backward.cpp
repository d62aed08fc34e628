// The backward pass. It walks the newest node first, so that a node is reached after all operations that use it.

#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/node.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

namespace {

/// into += addition, in place if nothing else holds the array and nothing is being recorded.
void accumulate(Tensor& into, Tensor addition) {
  if (!into.defined()) {
    into = std::move(addition);
  } else if (!recording() && into.sole_owner()) {
    kernels::add_in_place(into, addition);
  } else {
    into = add(into, addition);
  }
}

/// The gradient in the shape and dtype of its tensor: sums over the axes that were broadcast.
Tensor unbroadcast(Tensor gradient, Tensor const& input) {
  if (gradient.shape() != input.shape()) gradient = sum_to(gradient, input.shape());
  return gradient.to(input.dtype());
}

/// What a walk computes: gradients of all leaves (backward), or of chosen nodes (grad).
struct Goal {
  bool consume = false;
  bool ends_at_chosen = false;                                       // grad_within: stops at chosen nodes, before their hooks
  std::unordered_map<Node const*, Tensor> chosen{};                  // grad: the requested nodes, and their gradients
  std::unordered_set<Node const*> const* leads_to_chosen = nullptr;  // grad: the nodes from which a chosen one can be reached
};

Tensor run_hooks(Node const& node, Tensor gradient) {
  for (auto const& hook : node.hooks) {
    Tensor replaced = hook(gradient);
    if (!replaced.defined()) continue;
    require_alike("on_gradient", "the hook's gradient", replaced, "the tensor's", gradient);
    gradient = std::move(replaced);
  }
  return gradient;
}

/// A node that the walk has not reached yet, and its gradient so far. The frontier holds them by age, newest first.
struct Pending {
  std::shared_ptr<Node> node;
  Tensor gradient;
};
using Frontier = std::map<std::uint64_t, Pending, std::greater<>>;

/// The gradient of an input so far, for a rule to add to; null if there is none.
Tensor* sum_so_far(Frontier& frontier, Tensor const& input) {
  auto const found = frontier.find(input.node()->sequence);
  if (found == frontier.end()) return nullptr;
  return &found->second.gradient.own();  // not skipped: whether something else holds the array must not change how sums are rounded
}

/// For a node whose gradient is complete: runs its hooks and stores the gradient of leaves and chosen nodes. Whether the walk continues.
bool settle(Pending& current, Goal& goal) {
  Node& node = *current.node;
  auto const found = goal.chosen.find(&node);
  bool const ends = goal.ends_at_chosen && found != goal.chosen.end();
  if (!node.hooks.empty() && !ends) {
    if (!recording()) current.gradient.own();  // a hook may write to it
    current.gradient = run_hooks(node, std::move(current.gradient));
  }
  if (found != goal.chosen.end()) found->second = current.gradient;
  if (ends) return false;
  if (node.is_leaf()) {
    if (goal.leads_to_chosen == nullptr) {
      accumulate(node.gradient, std::move(current.gradient));
      node.gradient.own();
    }
    return false;
  }
  if (node.consumed) {
    throw Error(
        fmt::format("backward: the graph behind {} was freed by an earlier backward(); pass keep_graph, or use grad(), which keeps it",
                    describe(node)));
  }
  return true;
}

/// Sets which inputs of a node need gradients for the goal. Returns whether there are any.
bool choose_inputs(Node const& node, Goal const& goal, std::vector<bool>& wanted) {
  wanted.clear();
  bool any = false;
  for (Tensor const& input : node.inputs) {
    wanted.push_back(input.node() && (goal.leads_to_chosen == nullptr || goal.leads_to_chosen->contains(input.node().get())));
    any = any || wanted.back();
  }
  return any;
}

/// The result of a node's rule.
struct Derived {
  std::vector<Tensor> inputs, gradients;
  bool in_sum;  ///< the first gradient was added to its input's sum already
};

/// Runs the node's rule on its gradient, which is then freed; if the graph is to be freed, so is what the node has saved.
Derived derive(Pending& current, Goal const& goal, std::vector<bool> const& wanted, Frontier& pending) {
  Node& node = *current.node;
  if (node.recompute) node.output = node.output.hollow();  // all operations that use it have been walked
  require_unwritten(node);
  Derived derived{goal.consume ? std::move(node.inputs) : node.inputs, {}, false};
  auto& [inputs, gradients, in_sum] = derived;
  Tensor output = node.output;
  if (recording()) output.set_node(current.node);
  Tensor* const into = node.adds && wanted[0] && !recording() ? sum_so_far(pending, inputs[0]) : nullptr;
  in_sum = into != nullptr;
  try {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (node.recomputes(i)) inputs[i] = recomputed(inputs[i]);
    ModelPart const part(node);
    gradients = node.rule({current.gradient, inputs, output, wanted, into});
  } catch (...) {
    if (goal.consume) node.inputs = std::move(inputs);
    throw;
  }
  if (gradients.size() != inputs.size())
    throw Error(fmt::format("backward: the rule of {} gave {} gradients for {} inputs", node.operation, gradients.size(), inputs.size()));
  current.gradient = {};
  output = {};
  if (goal.consume) {
    node.consume();
  } else {
    forget_recomputed(node);
  }
  return derived;
}

/// Adds a gradient to a node's sum.
void reach(Frontier& pending, std::shared_ptr<Node> const& node, Tensor gradient) {
  Pending& entry = pending[node->sequence];
  if (!entry.node) entry.node = node;
  accumulate(entry.gradient, std::move(gradient));
}

/// Adds the gradients to the sums of the input nodes.
void hand_on(Derived derived, Node const& node, std::vector<bool> const& wanted, Frontier& pending) {
  for (std::size_t i = 0; i < derived.gradients.size(); ++i) {
    Tensor& gradient = derived.gradients[i];
    if (!wanted[i] || !gradient.defined()) continue;
    if (anomaly_mode()) check_finite(gradient, "the gradient of " + describe(node));
    if (i == 0 && derived.in_sum) continue;
    gradient = unbroadcast(std::move(gradient), derived.inputs[i]);
    reach(pending, derived.inputs[i].node(), std::exchange(gradient, {}));
  }
}

/// Takes the outputs by value, so that a part of the graph that nothing else holds is freed as soon as it is walked.
void walk(std::vector<Tensor> outputs, std::vector<Tensor> seeds, Goal& goal) {
  Frontier pending;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].node()) reach(pending, outputs[i].node(), seeds[i]);
  seeds.clear();
  outputs.clear();

  std::vector<bool> wanted;
  while (!pending.empty()) {
    Pending current = std::move(pending.begin()->second);
    pending.erase(pending.begin());
    if (!settle(current, goal) || !choose_inputs(*current.node, goal, wanted)) continue;
    hand_on(derive(current, goal, wanted, pending), *current.node, wanted, pending);
  }
}

Tensor seed_for(Tensor const& output, Tensor const& given, char const* function) {
  if (!given.defined()) {
    if (output.elements() != 1)
      throw Error(fmt::format("{}: an output of shape {} needs a seed (only one of a single element does not)", function,
                              to_string(output.shape())));
    return Tensor::ones(output.shape(), output.dtype());
  }
  require_alike(function, "the seed", given, "the output", output);
  return given;
}

/// All nodes from which a chosen node can be reached, including the chosen ones.
std::unordered_set<Node const*> leading_to(std::vector<Tensor> const& outputs, Goal const& goal) {
  std::unordered_set<Node const*> leading;
  for (auto const& [sequence, node] : nodes_behind(outputs, goal.ends_at_chosen ? &goal.chosen : nullptr)) {
    bool leads = goal.chosen.contains(node);
    for (Tensor const& input : node->inputs) leads = leads || (input.node() && leading.contains(input.node().get()));
    if (leads) leading.insert(node);
  }
  return leading;
}

std::vector<Tensor> gradients_of(std::vector<Tensor> const& inputs, std::vector<Tensor> outputs, std::vector<Tensor> seeds,
                                 bool ends_at_inputs, bool create_graph) {
  Goal goal{.ends_at_chosen = ends_at_inputs};
  for (Tensor const& input : inputs) goal.chosen.emplace(input.node().get(), Tensor());
  auto const leading = leading_to(outputs, goal);
  goal.leads_to_chosen = &leading;
  Recording const mode(create_graph);
  walk(std::move(outputs), std::move(seeds), goal);
  std::vector<Tensor> gradients;
  for (Tensor const& input : inputs) {
    Tensor const& found = goal.chosen.at(input.node().get());
    gradients.push_back(found.defined() ? found : Tensor::zeros(input.shape(), input.dtype()));
  }
  return gradients;
}

/// A leaf with x's array.
Tensor point_at(char const* function, Tensor const& x) {
  if (!x.defined() || x.dtype() == DType::int64)
    throw Error(fmt::format("{}: x must be real numbers, not {}", function, x.defined() ? to_string(x.dtype()) : "undefined"));
  Tensor point = x.detach();
  point.set_requires_grad();
  return point;
}

}  // namespace

void backward(Tensor const& output, Tensor const& seed, bool keep_graph) {
  if (!output.node()) throw Error("backward: the tensor was not made from anything that requires a gradient");
  Goal goal{.consume = !keep_graph};
  NoGrad const no_grad;
  walk({output}, {seed_for(output, seed, "backward")}, goal);
}

void Tensor::backward() const { heed::backward(*this); }

std::vector<Tensor> grad(std::vector<Tensor> outputs, std::vector<Tensor> const& inputs, std::vector<Tensor> const& seeds,
                         bool create_graph) {
  if (!seeds.empty() && seeds.size() != outputs.size())
    throw Error(fmt::format("grad: {} seeds for {} outputs", seeds.size(), outputs.size()));
  std::vector<Tensor> starts;
  for (std::size_t i = 0; i < outputs.size(); ++i) starts.push_back(seed_for(outputs[i], seeds.empty() ? Tensor() : seeds[i], "grad"));
  for (Tensor const& input : inputs) {
    if (!input.node()) throw Error("grad: an input does not require a gradient");
  }
  std::vector<Tensor> gradients = gradients_of(inputs, std::move(outputs), std::move(starts), false, create_graph);
  if (!create_graph)
    for (Tensor& gradient : gradients) gradient.own();
  return gradients;
}

Tensor grad(Tensor const& output, Tensor const& input, bool create_graph) {
  return grad({output}, std::vector{input}, {}, create_graph).front();
}

std::vector<Tensor> grad_within(std::vector<Tensor> outputs, std::vector<Tensor> const& inputs, std::vector<Tensor> seeds,
                                bool create_graph) {
  return gradients_of(inputs, std::move(outputs), std::move(seeds), true, create_graph);
}

Tensor hessian_vector_product(std::function<Tensor(Tensor const&)> const& f, Tensor const& x, Tensor const& v) {
  WithGrad const recorded;
  Tensor const point = point_at("hessian_vector_product", x);
  require_alike("hessian_vector_product", "v", v, "x", x);
  Tensor y = f(point);
  if (y.elements() != 1) throw Error(fmt::format("hessian_vector_product: f must give a single number, not {}", to_string(y.shape())));
  if (!y.requires_grad()) return Tensor::zeros(x.shape(), x.dtype());
  std::vector<Tensor> gradient = grad({std::exchange(y, {})}, std::vector{point}, {}, true);
  return gradient[0].requires_grad() ? grad(std::move(gradient), {point}, {v})[0] : Tensor::zeros(x.shape(), x.dtype());
}

Tensor jvp(std::function<Tensor(Tensor const&)> const& f, Tensor const& x, Tensor const& v) {
  WithGrad const recorded;
  Tensor const point = point_at("jvp", x);
  require_alike("jvp", "v", v, "x", x);
  Tensor const y = f(point);
  if (!y.requires_grad()) return Tensor::zeros(y.shape(), y.dtype());
  Tensor u = Tensor::zeros(y.shape(), y.dtype());
  u.set_requires_grad();
  std::vector<Tensor> back = grad({y}, {point}, {u}, true);
  return back[0].requires_grad() ? grad(std::move(back), {u}, {v}).front() : Tensor::zeros(y.shape(), y.dtype());
}

Tensor jacobian(std::function<Tensor(Tensor const&)> const& f, Tensor const& x) {
  WithGrad const recorded;
  Tensor const point = point_at("jacobian", x);
  Tensor const y = f(point);
  Tensor const identity = one_hot(Tensor::arange(y.elements(), DType::int64), y.elements(), y.dtype());
  std::vector<Tensor> rows;
  for (Index i = 0; i < y.elements(); ++i) {
    Tensor const row =
        y.requires_grad() ? grad({y}, {point}, {identity.rows(i, 1).viewed(y.shape())}).front() : Tensor::zeros(x.shape(), x.dtype());
    rows.push_back(row.viewed({x.elements()}));
  }
  return stack(rows, 0);
}

}  // namespace heed
