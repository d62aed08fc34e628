#pragma once

#include "autograd/ops/shape.hpp"
#include "nn/attention/attention.hpp"

// What attention computes on its way, by its reference.

namespace heed::test {

/// Attention that reads hard; REINFORCE alone, without what makes its gradient a biased one.
inline AttentionSettings hard(std::string const& estimator = "reinforce", std::string const& baseline = "none") {
  AttentionSettings settings;
  settings.read = "hard";
  settings.estimator.estimator = estimator;
  if (estimator != "reinforce") return settings;
  settings.estimator.baseline = baseline;
  settings.estimator.entropy = settings.estimator.expectation_rate = 0;
  settings.estimator.samples = baseline == "leave_one_out" ? 2 : 1;
  return settings;
}

inline Tensor by_reference(Attention const& attention, Tensor const& query, Tensor const& key, Tensor const& value,
                           Visibility const& visibility, Pass const& pass = {}) {
  ReferenceAttention const no_kernels;
  return attention(query, key, value, visibility, pass);
}

/// The weights a_ij, [B, H, n, m].
inline Tensor weights_of(Attention const& attention, Tensor const& query, Tensor const& key, Visibility const& visibility) {
  AttentionRecorder recorder({.weights = true});
  Observer const observer{.attention = &recorder};
  Pass pass;
  pass.watching.observer = &observer;
  attention(query, key, key, visibility, pass);
  return recorder.records().at(0).weights;
}

/// query [B, H, n, d], key [B, H, m, d] → [B, H, n, m]; the first query is at position 0.
inline Tensor scores_of(Score const& score, Tensor const& query, Tensor const& key) {
  AttentionForm form{.heads = query.size(1), .visibility = {}};
  AttentionInputs in{merge_heads(query), merge_heads(key)};
  score.fill(form, in);
  return composed_attention(form, in).scores;
}

/// The read of weights a_ij: r_ij with c_i = Σ_j r_ij v_j. Reports the choices to the pass.
inline Tensor read_of(Read const& read, Tensor const& weights, Visibility const& visibility, Pass const& pass, std::string const& layer) {
  auto const hard = read.choice(weights.shape(), visibility, pass, layer);
  if (!hard) return weights;
  ReadWeights const r = composed_read(*hard, weights, visibility);
  auto const reach = visibility.causal ? HardChoices::Reach::later : HardChoices::Reach::sequence;
  if (hard->scored) pass.watching.hard_choices->made.push_back({r.probability, r.entropy, reach});
  return r.read;
}

}  // namespace heed::test
