#pragma once

#include "autograd/tensor.hpp"

/// Attention without softmax: a state per head that is decayed, written and read (linear_{attention,kernel,reference}.cpp).
namespace heed {

/// What linear attention reads: H heads, keys of width d, values of width e.
struct LinearInputs {
  Tensor query = {}, key = {};  ///< q and k, [B, T, H·d], after feature and scale
  Tensor value = {};            ///< v, [B, T, H·e], times the strength of the write if it has one
  Tensor erase = {};            ///< a, [B, T, H·d]: the key that erases, β_t k_t for the delta rule; undefined: 0
  Tensor log_decay = {};        ///< g ≤ 0: [B, T, H], or [B, T, H·d] with one per entry of the keys; undefined: 0
  Tensor state = {};            ///< S_0, [B, H, d, e]; undefined: 0
};

/// Settings of linear attention. For each head, from S_0,
///
///   S′ = diag(e^{g_t}) S_{t−1},   S_t = S′ + k_t (v_t − S′ᵀ a_t)ᵀ,   o_t = S_tᵀ q_t
struct LinearForm {
  Index heads = 1;
  bool read_first = false;  ///< o_t = S′ᵀ q_t: without token t itself
  bool by_steps = false;    ///< token by token, for decoding; otherwise, and where it is differentiated, in chunks
};

struct LinearResult {
  Tensor context;     ///< o, [B, T, H·e]
  Tensor state = {};  ///< S_T, [B, H, d, e]; undefined unless wanted
};

/// In chunks of a fixed number of tokens, by products within a chunk and by the state between chunks: time linear in T; of the states only
/// those between chunks are kept for the derivative. The bits of o_t depend on the tokens up to t alone, not on T or threads (Katharopoulos
/// et al. 2020; delta rule: Schlag et al. 2021; in chunks: Yang et al. 2024; with decays: Yang et al. 2025). Throws Error for wrong shapes.
LinearResult linear_attention(LinearForm const& form, LinearInputs const& inputs, bool wants_state = false);

/// The same composed of simple operations, token by token.
LinearResult linear_attention_reference(LinearForm const& form, LinearInputs const& inputs, bool wants_state = false);
/// And chunk by chunk: a graph that holds the states between chunks, and intermediate results of one chunk.
LinearResult linear_attention_in_chunks(LinearForm const& form, LinearInputs const& inputs, bool wants_state = false);

}  // namespace heed
