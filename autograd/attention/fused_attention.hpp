#pragma once

#include <memory>
#include <optional>

#include "autograd/attention/attention.hpp"
#include "autograd/attention/inputs.hpp"
#include "autograd/attention/pairs.hpp"

/// Fused attention (attention.cpp, kernel.cpp) and its reference (reference.cpp).
namespace heed {

/// Settings of fused attention: contexts Σ_j a_ij v_j with the weights a_ij of the scores
///
///   e_ij = cap(g(Σ_c f(q_ic, k_jc, w_c); i − j, α_i, β_j, p)) + r_{j−i} + near_i,clamp(j−i) + u_i + t_j
///
/// over the visible keys inside the window. Defaults: f = scale · q k, g(s) = s, cap(e) = e, no biases, softmax.
struct AttentionForm {
  Index heads = 1;
  Visibility visibility;
  double scale = 1;
  std::shared_ptr<PairSum const> sum = {};
  std::shared_ptr<PairFinish const> finish = {};
  std::optional<double> softcap = {};  ///< c: cap(e) = c tanh(e/c)
  RowAlign const* align = nullptr;     ///< null: softmax
  double window = 0;                   ///< if > 0: only keys within this distance of the query's centre, by default the query's position
  bool gaussian = false;               ///< weights times exp(−(j − centre)²/(2 deviation²)); needs centres
  double deviation = 1;
  std::optional<HardRead> hard = {};          ///< reads one key instead of the expectation
  std::optional<WeightDropout> dropout = {};  ///< applied last, after the Gaussian and a hard read
  Index key_heads = 0;                        ///< G groups of heads that share keys and values; 0: every head has its own

  Index groups() const { return key_heads > 0 ? key_heads : heads; }
  /// Numbers per query that a scored hard read appends to the contexts.
  Index scores_of_choice() const { return hard && hard->scored ? 2 * heads : 0; }
};

/// [B, n, H·d_v]; a query that sees no key gives zeros. The kernel holds one block of rows of scores at a time, never [B, H, n, m] or [n,
/// m, d], draws dropout's mask again for the gradient, and takes time proportional to the window (Vaswani et al. 2017, Bahdanau et al.
/// 2015, Luong et al. 2015; blocks as in Dao et al. 2022). `rows`, unless null, receives the statistics of the rows (row_statistics.hpp). A
/// scored hard read gives [B, n, H·d_v + 2·H]: contexts, probabilities and entropies (see parted_read).
Tensor fused_attention(AttentionForm const& form, AttentionInputs const& inputs, Tensor* rows = nullptr);
/// The context of a hard read [B, n, H·d_v] and, if scored, its probability and entropy [B, H, n].
struct ScoredContext {
  Tensor context, probability = {}, entropy = {};
};
/// Splits fused_attention()'s result for this form, and joins the parts again.
ScoredContext parted_read(AttentionForm const& form, Tensor const& result);
Tensor joined_read(ScoredContext const& read);

/// The same, composed of simple operations.
Tensor attention_reference(AttentionForm const& form, AttentionInputs const& inputs);
/// With intermediate results: scores and, before a hard read and dropout, weights [B, H, n, m]. Without values there is no context.
struct ComposedAttention {
  Tensor scores, weights;
  ScoredContext read;
};
/// Optional inputs of the composition: values already computed, and what the kernels do not support; undefined: none.
struct ComposedParts {
  Tensor sums = {};     ///< Σ_c f: [B, H, n, m]
  Tensor bias = {};     ///< added to the scores: [B or 1, H, n, m]
  Tensor factors = {};  ///< factors of dropout on the weights: [B, H, n, m]
};
ComposedAttention composed_attention(AttentionForm const& form, AttentionInputs const& inputs, ComposedParts const& parts = {});
/// Weights from scores.
Tensor composed_weights(AttentionForm const& form, AttentionInputs const& inputs, Tensor const& scores);
/// attention_rows() of a composition.
Tensor composed_rows(AttentionForm const& form, AttentionInputs const& inputs, ComposedAttention const& composed);

/// x [B, m, G·d] → [B, H, m, d]: each group's part, repeated for every head of the group.
Tensor heads_of_groups(Tensor const& x, Index heads, Index groups);
/// Expands biases by clipped distance to all pairs: near [B, n, H, 2c + 1] → [B, H, n, keys]; the first query is at position `offset`.
Tensor near_bias(Tensor const& near, Index offset, Index keys);

/// f = w tanh(q + k), with one exponential per query and per key (Bahdanau et al. 2015).
std::shared_ptr<PairSum const> additive_sum();

/// Second derivatives of fused attention: those of Σ u·g over its inputs, g the inputs' gradients for dy, by the inputs and by dy.
struct AttentionSecond {
  AttentionInputs inputs;
  Tensor dy;
};
/// As attention_reference(), a block of queries at a time, with pair_sums(): the memory of a block does not grow with n.
AttentionSecond attention_second(AttentionForm const& form, AttentionInputs const& inputs, Tensor const& dy, AttentionInputs const& u);

}  // namespace heed
