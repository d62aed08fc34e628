#pragma once

#include <optional>

#include "nn/attention/attention.hpp"
#include "nn/layers.hpp"
#include "nn/model.hpp"

namespace heed {

/// `model: {kind: single_attention, …}`.
struct SingleAttentionSettings : Settings {
  Index pairs = 16;
  Index keys = 32;
  Index question = 1;
  std::optional<Index> context;
  std::string inputs = "one_hot";
  std::optional<Index> input_width;
  std::optional<double> input_norm;
  Index heads = 1;
  Index width = 32;
  std::optional<Index> key_width;    ///< d_k; default: width / heads
  std::optional<Index> value_width;  ///< d_v; default: width / heads
  AttentionSettings attention;
  double spread = 1;
  std::string readout = "fixed";
  double sharpness = 8;

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// A single attention layer between fixed inputs and a readout, without residual, norm, MLP, positions and biases, to isolate the effect of
/// score and heads (claims of Vaswani et al. 2017, sections 3.2.1 and 3.2.2; Britz et al. 2017).
///
/// A sequence is k_1 v_1 … k_n v_n q_1 … q_g, possibly continued (the tasks recall and lookup): the query is made of the vectors x of all g
/// question tokens, concatenated, and the answers are at the last g positions.
///
///     c = Σ_j a_j(W_q [x(q_1) … x(q_g)], W_k x(k_j)) y(v_j)
///     fixed readout:   logits = sharpness · c,  y(v) = onehot(v);  one head, g = 1
///     linear readout:  logits = W_o c,          y(v) = W_v x(v)
///
/// x is a multiple of a one-hot vector or, for a key, a fixed Gaussian vector: entries have variance 1 unless input_norm gives another
/// length. Initial queries and keys have entries of variance spread² if the inputs' is 1. Tokens are numbered as in the tasks: 0 is blank,
/// 1 … `keys` the keys, then the values.
class SingleAttention : public Model {
 public:
  SingleAttention(Parameters& parameters, SingleAttentionSettings const& settings, Index vocabulary);
  SingleAttention(Parameters& parameters, SingleAttentionSettings const& settings, Signature const& data)
      : SingleAttention(parameters, settings, data["inputs"].classes) {}

  Outcome run(Batch const& batch, Pass const& pass) const override;
  void check(Batch const& batch) const override;
  Index context() const override { return context_; }
  Index vocabulary() const override { return 1 + settings_.keys + values_; }
  Index width() const override { return settings_.width; }
  std::optional<Index> limit() const override { return context_; }
  EstimatorSettings const* estimator() const override { return settings_.attention.estimator_if_hard(); }
  double flops_per_token() const override;

 private:
  SingleAttentionSettings settings_;
  Index context_, values_;
  Index key_width_, value_width_;  ///< per head
  Tensor key_vectors_;             ///< [1 + K, in]: zeros for blank
  Tensor value_vectors_;           ///< [C, C]
  std::string part_;
  Linear query_, key_;
  std::optional<Linear> value_, output_;
  Attention attention_;
};

}  // namespace heed
