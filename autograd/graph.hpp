#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "autograd/error.hpp"
#include "autograd/tensor.hpp"

namespace heed {

// Threads. Any number of threads may use the engine at once, each with graphs of its own. What a Recording, Anomaly or ModelPart sets holds
// for its thread. Threads may share tensors that none of them writes to, leaves too: operations and grad() write to no tensor, while
// backward() adds to the gradient of a leaf, which threads must do one at a time. One of them at a time has the pool
// (autograd/parallel.hpp); results have the bits of one thread alone. Settings of the process (set_threads, set_products,
// set_recompute_bytes, MemoryLimit) are made while no other thread computes.

// ---------------------------------------------------------------- for users

/// Accumulates d(output)/d(leaf) in the grad() of every leaf that requires a gradient. `output` has one element unless `seed` (of its
/// shape) is given. Frees what the graph has saved during the walk, unless `keep_graph`. A second walk over a freed graph throws Error;
/// over a kept graph it accumulates again. Iterative: the length of a chain is limited by memory only.
void backward(Tensor const& output, Tensor const& seed = {}, bool keep_graph = false);

/// Σ_k seeds[k] · d(outputs[k])/d(inputs[i]) for every i; zeros where there is no path. Seeds default to ones for outputs of one element.
/// Changes no grad() and keeps the graph, except what nothing else holds: the graph of outputs that are moved in is freed during the walk.
/// With `create_graph` the results are themselves differentiable, to any order.
std::vector<Tensor> grad(std::vector<Tensor> outputs, std::vector<Tensor> const& inputs, std::vector<Tensor> const& seeds = {},
                         bool create_graph = false);
Tensor grad(Tensor const& output, Tensor const& input, bool create_graph = false);

/// H·v for the Hessian H of the scalar f(x): the derivative of ∇f(x)·v (Pearlmutter 1994). f is called with a leaf that has x's array.
/// Throws Error unless v has x's shape and dtype and f returns one element.
Tensor hessian_vector_product(std::function<Tensor(Tensor const&)> const& f, Tensor const& x, Tensor const& v);

/// J·v for y = f(x) with Jacobian J: d/dt f(x + t v) at t = 0, in y's shape. Two reverse passes: J·v is the gradient of (Jᵀu)·v with
/// respect to u. f is called with a leaf that has x's array. Throws Error unless v has x's shape and dtype.
Tensor jvp(std::function<Tensor(Tensor const&)> const& f, Tensor const& x, Tensor const& v);

/// ∂y_i/∂x_j of y = f(x), shape [elements of y, elements of x]; one backward pass per row.
Tensor jacobian(std::function<Tensor(Tensor const&)> const& f, Tensor const& x);

/// Whether operations on tensors that require gradients are being recorded on this thread.
bool recording();

/// While it lives, operations on this thread are not recorded (NoGrad), or are recorded again (WithGrad).
struct Recording : Temporarily<bool> {
  explicit Recording(bool on);
};
struct NoGrad : Recording {
  NoGrad() : Recording(false) {}
};
struct WithGrad : Recording {
  WithGrad() : Recording(true) {}
};

/// Whether the values and gradients of operations are checked (see Anomaly).
bool anomaly_mode();

/// A NaN or an infinity found in anomaly mode: the message names the operation, the part of the model and the first such element.
struct NonFinite : Error {
  using Error::Error;
};

/// Anomaly mode: while it lives, every operation and every gradient is checked, and the first NaN or infinity throws NonFinite.
struct Anomaly : Temporarily<bool> {
  Anomaly();
};

/// Names the part of the model ("blocks.0.attention") for error messages while it lives. Parts nest: the inner name replaces the outer.
struct ModelPart : Temporarily<std::string const*> {
  explicit ModelPart(std::string const& name);
  /// The part in which a node was made.
  explicit ModelPart(Node const& node);
};

// ---------------------------------------------------------------- for operations

/// Arguments of a derivative rule. Inputs and output that the operation did not ask to keep have shape and dtype, but no elements.
struct BackwardContext {
  Tensor const& dy;
  std::vector<Tensor> const& inputs;
  Tensor const& y;
  std::vector<bool> const& wanted;
  /// For operations that ask for it (Keep::sum): the sum of input 0's gradient so far, to which the rule adds in place, returning the same
  /// array. Null if there is none yet, or if the walk is recorded.
  Tensor* into = nullptr;

  Tensor const& x(std::size_t i = 0) const { return inputs[i]; }
  /// Whether the gradient may overwrite input i's array: the walk frees the graph, and nothing else holds it.
  bool may_reuse(std::size_t i) const { return inputs[i].sole_owner(); }
  bool may_reuse_dy() const { return dy.sole_owner(); }
  bool wants(std::size_t i) const { return wanted[i]; }
};

/// Gradients with respect to the inputs, in order; an undefined one means zero. The engine sums a gradient of a broadcast shape to its
/// input's shape. Rules hold settings and constants, never tensors of the graph. They consist of operations, so that they can be
/// differentiated themselves when the walk is recorded (recording() is true).
using Rule = std::function<std::vector<Tensor>(BackwardContext const&)>;

/// What a rule needs from its operation: which inputs, the output, and whether it adds to BackwardContext::into.
struct Keep {
  std::array<bool, 4> inputs{};  ///< per input; the last flag is for all further inputs
  bool output = false;
  bool sum = false;
};
inline constexpr std::array<bool, 4> all_inputs{true, true, true, true};
inline constexpr Keep keep_nothing{};
inline constexpr Keep keep_inputs{.inputs = all_inputs};
inline constexpr Keep keep_output{.output = true};

/// Whether record() has anything to do for these inputs: one requires a gradient and recording is on, or values are checked. Operations of
/// decoding ask first: collecting what a node would hold takes a third of a token's time outside of matrix products.
template <class... X>
bool records(X const&... inputs) {
  return anomaly_mode() || (recording() && (inputs.requires_grad() || ...));
}

/// Ends every operation: returns `value` as the result of `operation` on `inputs`, with the rule for its derivative if an input requires a
/// gradient. An optional input that is not there is an undefined tensor, here and in the rule.
Tensor record(char const* operation, std::vector<Tensor> inputs, Tensor value, Keep keep, Rule rule);

/// Number of operations on the longest path of the graph behind `output` (0 for a leaf); each time step of a scan counts as one. This is
/// the sequential depth of a computation (Vaswani et al. 2017, Table 1).
Index critical_path(Tensor const& output);

}  // namespace heed
