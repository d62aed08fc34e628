#pragma once

#include <array>
#include <memory>
#include <optional>

#include "autograd/attention/attention.hpp"
#include "autograd/attention/hard_read.hpp"
#include "autograd/attention/pairs.hpp"

/// Fused attention (attention.cpp, kernel.cpp).
namespace heed {

/// What fused attention computes beside the arrays that it is given: contexts Σ_j a_ij v_j with the weights a_ij of the scores
///
///   e_ij = cap(g(Σ_c f(q_ic, k_jc, w_c); i − j, α_i, β_j, p)) + r_{j−i} + near_i,clamp(j−i) + u_i + t_j
///
/// over the visible keys inside the window. What is not given is not there: f = scale · q k, g(s) = s, cap(e) = e, no biases, softmax.
struct AttentionForm {
  std::int64_t heads = 1;
  Visibility visibility;
  double scale = 1;
  std::shared_ptr<PairSum const> sum = {};
  std::shared_ptr<PairFinish const> finish = {};
  std::optional<double> softcap = {};          ///< c: cap(e) = c tanh(e/c)
  std::shared_ptr<RowAlign const> align = {};  ///< null: softmax
  double window = 0;      ///< if > 0: keys at most so far from the query's centre, which is its own position unless centres are given
  bool gaussian = false;  ///< weights times exp(−(j − centre)²/(2 deviation²)), with centres
  double deviation = 1;
  std::optional<HardRead> hard = {};          ///< reads one key instead of all
  std::optional<WeightDropout> dropout = {};  ///< last, after the Gaussian and a hard read
  std::int64_t key_heads = 0;                 ///< G groups of heads that share keys and values; 0: every head has its own

  std::int64_t groups() const { return key_heads > 0 ? key_heads : heads; }
  /// Numbers of a query's result beside its contexts: those of a scored hard read.
  std::int64_t scores_of_choice() const { return hard && hard->scored ? 2 * heads : 0; }
};

/// What fused attention reads; all but the first three may be undefined.
struct AttentionInputs {
  Tensor query = {};                   ///< [B, n, H·d]: head h owns the elements h·d … (h+1)·d − 1
  Tensor key = {}, value = {};         ///< [B, m, G·d] and [B, m, G·d_v]: head h reads group ⌊h G/H⌋
  Tensor weight = {};                  ///< w of f: [H, d]
  Tensor parameter = {};               ///< p of g: [H, 1] or [H, 2]
  Tensor of_query = {}, of_key = {};   ///< α and β: [B, H, n] and [B, H, m]
  Tensor relative = {};                ///< r: [H, n + m − 1], the element j − i + n − 1, i counted from the first query
  Tensor near = {};                    ///< [B, n, H, 2c + 1]: the element clamp(j − i, −c, c) + c, i the query's position
  Tensor of_row = {}, of_column = {};  ///< u and t: [B, H, n] and [B, H, m]
  Tensor centres = {};                 ///< [B, H, n, 1]
  Tensor align = {};                   ///< the align's parameter: [H]

  /// Their places in all().
  enum Slot : std::size_t {
    at_query,
    at_key,
    at_value,
    at_weight,
    at_parameter,
    at_of_query,
    at_of_key,
    at_relative,
    at_near,
    at_of_row,
    at_of_column,
    at_centres,
    at_align,
    count
  };
  std::array<Tensor*, count> all() {
    return {&query, &key, &value, &weight, &parameter, &of_query, &of_key, &relative, &near, &of_row, &of_column, &centres, &align};
  }
};

/// [B, n, H·d_v]; a row that sees nothing is zeros. The kernel holds one block of rows of scores at a time, never [B, H, n, m] (nor
/// [n, m, d]), draws dropout's mask again for the gradient, and works in proportion to the window (Vaswani et al. 2017, Bahdanau et al.
/// 2015, Luong et al. 2015; blocks as in Dao et al. 2022).
/// `rows`, unless it is null, is set to the statistics of the rows (attention_rows.hpp), measured on the way.
/// Of a scored hard read [B, n, H·d_v + 2·H]: contexts, probabilities and entropies side by side (parted_read).
Tensor fused_attention(AttentionForm const& form, AttentionInputs const& inputs, Tensor* rows = nullptr);
/// The same as a composition of simple operations.
Tensor attention_reference(AttentionForm const& form, AttentionInputs const& inputs);
/// Its sums Σ_c f, the scores from them and, before dropout, the weights: [B, H, n, m].
Tensor composed_sums(AttentionForm const& form, AttentionInputs const& inputs);
Tensor composed_scores(AttentionForm const& form, AttentionInputs const& inputs, Tensor sums);
Tensor composed_weights(AttentionForm const& form, AttentionInputs const& inputs, Tensor const& scores);
/// attention_rows() of these.
Tensor composed_rows(AttentionForm const& form, AttentionInputs const& inputs, Tensor const& scores, Tensor const& weights);
/// A scored hard read's context [B, n, H·d_v], and its probability and entropy [B, H, n].
struct ScoredContext {
  Tensor context, probability, entropy;
};
ScoredContext parted_read(Tensor const& result, std::int64_t heads);
/// From weights before dropout the result, `factors` being what dropout multiplies them by (undefined: 1); composed.
Tensor composed_result(AttentionForm const& form, Tensor const& value, Tensor const& weights, Tensor const& factors);
/// Softmax attention over scale · q_i·k_j (Vaswani et al. 2017).
inline Tensor scaled_dot_attention(Tensor const& query, Tensor const& key, Tensor const& value, std::int64_t heads, double scale,
                                   Visibility const& visibility) {
  return fused_attention({.heads = heads, .visibility = visibility, .scale = scale}, {query, key, value});
}

/// x [B, m, G·d], what is of each group for every head of it: [B, H, m, d].
Tensor heads_of_groups(Tensor const& x, std::int64_t heads, std::int64_t groups);
/// Biases by distance clipped on both sides, laid out over the pairs: near [B, n, H, 2c + 1] → [B, H, n, keys], of the first query at
/// `offset`.
Tensor near_bias(Tensor const& near, std::int64_t offset, std::int64_t keys);

/// f = w tanh(q + k) by exponentials computed once a query and a key (Bahdanau et al. 2015).
std::shared_ptr<PairSum const> additive_sum();

}  // namespace heed
