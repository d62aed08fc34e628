#pragma once

#include <vector>

#include "autograd/attention/linear_attention.hpp"

/// The kernels of linear attention.
namespace heed {

namespace kernels {

inline constexpr Index linear_chunk = 32;  ///< tokens

/// What is computed of which arrays.
struct LinearExtents {
  Index batch = 0, length = 0, heads = 0;
  Index width = 0, value_width = 0;  ///< of a head: d and e
  Index decays = 0;                  ///< of a head and token: 0, 1, or d
  bool erases = false, read_first = false;

  Index state_size() const { return width * value_width; }
  Index states() const;  ///< before each chunk
};

/// Writes the contexts, and S_T unless it is null. `kept` [B, H, states(), d, e], if defined, receives the states for the derivative.
template <class T>
void linear_forward(LinearExtents const& extents, LinearInputs const& in, T* context, T* state, Tensor& kept);

/// The gradients of all inputs that are defined, from those of the contexts and of S_T (null: 0).
template <class T>
LinearInputs linear_backward(LinearExtents const& extents, LinearInputs const& in, Tensor const& kept, T const* dcontext, T const* dstate);

/// As linear_forward, token by token.
template <class T>
void linear_steps(LinearExtents const& extents, LinearInputs const& in, T* context, T* state);

}  // namespace kernels

/// What linear attention reads as the inputs of an operation, and back.
inline std::vector<Tensor> tensors_of(LinearInputs const& in) { return {in.query, in.key, in.value, in.erase, in.log_decay, in.state}; }
inline LinearInputs linear_inputs(std::vector<Tensor> const& all) { return {all[0], all[1], all[2], all[3], all[4], all[5]}; }

/// Throws Error unless the shapes fit.
kernels::LinearExtents linear_extents(LinearForm const& form, LinearInputs const& in);

}  // namespace heed
