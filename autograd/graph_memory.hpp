#pragma once

#include <functional>
#include <vector>

#include "autograd/graph.hpp"

// Which arrays the graph holds: arrays that are recomputed instead of kept, and operations whose derivatives keep no intermediate results.

namespace heed {

/// f(inputs), recomputed when its gradient is wanted instead of keeping intermediate results (Chen et al. 2016). f is a pure function of
/// its inputs and of leaves (parameters) that it holds; it runs once more in the backward walk, and once more for each further order of
/// derivative, which keeps no intermediate results either.
Tensor checkpoint(std::function<Tensor(std::vector<Tensor> const&)> const& f, std::vector<Tensor> const& inputs);

/// f(inputs), where row r of the result depends on row r of inputs[0] only, and all rows share the other inputs. The value and its
/// derivatives are computed some rows at a time: intermediate results of f are held for about 2¹⁵ elements of inputs[0]. f is a pure
/// function, holds no tensor that wants a gradient, and takes any number of rows; each order of derivative runs it again.
Tensor by_rows(std::function<Tensor(std::vector<Tensor> const&)> const& f, std::vector<Tensor> const& inputs);
inline constexpr Index by_rows_elements = Index{1} << 15;

/// While it lives, graphs on this thread are made to be differentiated twice: layers that can be computed by_rows() are, at the cost of
/// computing their values again. It must live while gradients are taken too: checkpoint() computes values then.
struct ForSecondDerivatives : Temporarily<bool> {
  ForSecondDerivatives();
};
/// Whether one lives on this thread.
bool for_second_derivatives();

/// The derivatives of Σ_i u_i·g_i by the inputs and, last, by dy; g_i are the gradients that a kernel gives for a step. An undefined u_i is
/// zero, as is an undefined result.
using SecondRule = std::function<std::vector<Tensor>(BackwardContext const& step, std::vector<Tensor> const& u)>;

/// An operation with hand-written kernels: like record(), but all inputs are kept, and where the walk records the kernel's gradients are an
/// operation themselves. Its derivatives are those of `second`, where there is one, and else, as all further ones, those of `reference`:
/// the same function composed of simple operations.
Tensor record_fused(char const* operation, std::vector<Tensor> inputs, Tensor value, Keep keep, Rule kernel,
                    std::function<Tensor(std::vector<Tensor> const&)> reference, SecondRule second = {});

/// Some rows of a function that by_rows() could compute, or their sum: inputs[0] has rows `first` … of the first input, the others all.
using SomeRows = std::function<Tensor(std::vector<Tensor> const& inputs, Index first)>;
/// A SecondRule for such a function, which holds intermediate results for `at_once` rows [rows, n] at a time (0: for about 2¹⁵ elements).
/// dy has the same rows, or is one number.
std::vector<Tensor> second_by_rows(SomeRows const& of, BackwardContext const& step, std::vector<Tensor> const& u, Index at_once = 0);

/// An operation's value again from its inputs, bit for bit.
using Recompute = std::function<Tensor(std::vector<Tensor> const& inputs)>;

/// A derivative computed from dy, with 0 where it is NaN and dy is 0: what where, maximum, clamp … did not choose has 0, not 0 · ∞.
Tensor zero_where_unused(Tensor const& dy, Tensor const& derivative);

/// The derivative of an elementwise operation as an operation itself, value = derivative(dy, x): its own derivatives are those of the
/// formula's graph, computed a block of elements at a time, so that no intermediate results of the formula are kept.
Tensor record_derivative(char const* operation, Tensor const& dy, Tensor const& x, Tensor value,
                         std::function<Tensor(Tensor const& dy, Tensor const& x)> derivative);

/// Marks `value` as cheaper to recompute than to keep, from recompute_bytes() on: operations that use it have it recomputed in the backward
/// walk instead of holding it. For what is one pass over inputs that are kept anyway (norms, activations).
Tensor recomputable(Tensor value, Recompute recompute);
/// From how many bytes on; 2 MiB unless set: less stays in the processor's cache, where keeping costs nothing.
Index recompute_bytes();
void set_recompute_bytes(Index bytes);

}  // namespace heed
