#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autograd/error.hpp"
#include "autograd/tensor.hpp"

namespace heed {

// ---------------------------------------------------------------- for users

/// Accumulates d(output)/d(leaf) in the grad() of every leaf that wants one. `output` has one element unless `seed` (of its shape) is
/// given. Frees what the graph has saved as it goes, unless `keep_graph`; a second walk over a freed graph throws Error, over a kept one it
/// accumulates again. Iterative: the length of a chain is bounded by memory alone.
void backward(Tensor const& output, Tensor const& seed = {}, bool keep_graph = false);

/// Σ_k seeds[k] · d(outputs[k])/d(inputs[i]) for every i; zeros where there is no path. Seeds default to ones for outputs of one element.
/// Touches no grad() and keeps the graph, but for what nobody else holds: of outputs that are moved here, each part goes as soon as it is
/// walked. With `create_graph` the results are themselves differentiable, to any order.
std::vector<Tensor> grad(std::vector<Tensor> outputs, std::vector<Tensor> const& inputs, std::vector<Tensor> const& seeds = {},
                         bool create_graph = false);
Tensor grad(Tensor const& output, Tensor const& input, bool create_graph = false);

/// H·v for the Hessian H of the scalar f(x): the derivative of ∇f(x)·v (Pearlmutter 1994). x is a leaf, v has its shape.
Tensor hessian_vector_product(std::function<Tensor(Tensor const&)> const& f, Tensor const& x, Tensor const& v);

/// J·v of y = f(x), J its Jacobian: d/dt f(x + t v) at t = 0, in y's shape. By two reverse passes: u ↦ Jᵀu is linear, and J is what its
/// derivative is multiplied by from the left. x is a leaf, v has its shape.
Tensor jvp(std::function<Tensor(Tensor const&)> const& f, Tensor const& x, Tensor const& v);

/// ∂y_i/∂x_j of y = f(x), shape [elements of y, elements of x]; one backward walk a row.
Tensor jacobian(std::function<Tensor(Tensor const&)> const& f, Tensor const& x);

/// True if operations on tensors that want gradients are being recorded.
bool recording();

/// While it lives, nothing is recorded on this thread (NoGrad), or everything is again (WithGrad).
class Recording {
 public:
  explicit Recording(bool on);
  ~Recording();
  Recording(Recording const&) = delete;
  Recording& operator=(Recording const&) = delete;

 private:
  bool before_;
};
struct NoGrad : Recording {
  NoGrad() : Recording(false) {}
};
struct WithGrad : Recording {
  WithGrad() : Recording(true) {}
};

/// While it lives, backward() on this thread adds a leaf's gradient to its grad() as soon as nothing more can come, instead of at the end
/// of the walk, and then calls `ready` with the leaf: of every leaf that the output was made from once, also of one that gets no gradient.
/// The gradients are the same bits. The walk counts its edges to leaves beforehand; without such an object nothing is counted.
class GradientReady {
 public:
  using Ready = std::function<void(Tensor const& leaf)>;
  explicit GradientReady(Ready ready);
  ~GradientReady();
  GradientReady(GradientReady const&) = delete;
  GradientReady& operator=(GradientReady const&) = delete;

 private:
  Ready const ready_;
  Ready const* before_;
};

/// True where the values and gradients of operations are checked (see Anomaly).
bool anomaly_mode();

/// A NaN or an infinity, found in anomaly mode: the message names the operation, the part of the model and the first element.
struct NonFinite : Error {
  using Error::Error;
};

/// Anomaly mode: while it lives, every operation and every gradient is checked, and the first NaN or infinity throws NonFinite.
class Anomaly {
 public:
  Anomaly();
  ~Anomaly();
  Anomaly(Anomaly const&) = delete;
  Anomaly& operator=(Anomaly const&) = delete;

 private:
  bool before_;
};

/// Names the part of a computation ("blocks.0.attention") for messages, while it lives. Parts nest: the inner name replaces the outer.
class ModelPart {
 public:
  explicit ModelPart(std::string const& name);
  /// The part that a node was made in.
  explicit ModelPart(Node const& node);
  ~ModelPart();
  ModelPart(ModelPart const&) = delete;
  ModelPart& operator=(ModelPart const&) = delete;

 private:
  std::string const* before_;
};

// ---------------------------------------------------------------- for operations

/// What a derivative rule is given. Inputs and output that the operation did not ask to keep have shape and dtype, but no elements.
struct BackwardContext {
  Tensor const& dy;
  std::vector<Tensor> const& inputs;
  Tensor const& y;
  std::vector<bool> const& wanted;
  /// For operations that ask for it (Keep::sum): what others have given to input 0's gradient so far, to which the rule adds its own in
  /// place, giving back the same array; null where there is nothing yet, or the walk records.
  Tensor* into = nullptr;

  Tensor const& x(std::size_t i = 0) const { return inputs[i]; }
  /// Whether nobody else will read input i's array again: the walk frees the graph and no one holds it, so that its gradient may take its
  /// place.
  bool may_reuse(std::size_t i) const { return inputs[i].sole_owner(); }
  bool may_reuse_dy() const { return dy.sole_owner(); }
  bool wants(std::size_t i) const { return wanted[i]; }
};

/// Gradients with respect to the inputs, in order; an undefined one means zero. A gradient of a broadcast shape is summed to its input's
/// shape by the engine. Rules hold settings and constants, never tensors of the graph; they are made of operations, so that they can be
/// differentiated themselves when the walk records (recording() is true).
using Rule = std::function<std::vector<Tensor>(BackwardContext const&)>;

/// What a rule needs of its operation: which inputs, the output, and whether it adds to BackwardContext::into.
struct Keep {
  std::array<bool, 4> inputs{};  ///< of each input; the last flag is all further inputs'
  bool output = false;
  bool sum = false;
};
inline constexpr std::array<bool, 4> all_inputs{true, true, true, true};
inline constexpr Keep keep_nothing{};
inline constexpr Keep keep_inputs{.inputs = all_inputs};
inline constexpr Keep keep_output{.output = true};

/// Whether record() has anything to do for an operation on these: one of them wants a gradient and that is recorded, or values are checked.
/// The operations that decoding consists of ask before they gather what a node would hold, a third of a token's time beside its products.
template <class... X>
bool records(X const&... inputs) {
  return anomaly_mode() || (recording() && (inputs.requires_grad() || ...));
}

/// Ends every operation: `value` as the result of `operation` on `inputs`, with the rule for its derivative if one of them wants it.
Tensor record(char const* operation, std::vector<Tensor> inputs, Tensor value, Keep keep, Rule rule);

/// Number of operations on the longest path of the graph behind `output` (0 for a leaf), each time step of a scan being one: the sequential
/// depth of a computation (Vaswani et al. 2017, Table 1).
std::int64_t critical_path(Tensor const& output);

}  // namespace heed
