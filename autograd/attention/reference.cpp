// Fused attention composed of simple operations: the reference of its kernels, for derivatives of higher order and the weight matrix.

#include <cmath>

#include "autograd/attention/fused_attention.hpp"
#include "autograd/attention/row_statistics.hpp"
#include "autograd/ops/operations.hpp"

namespace heed {

namespace {

/// [H, 1, 1] of one column of [H, ·]; undefined where there is none.
Tensor column(Tensor const& x, Index at) { return x.defined() && at < x.size(1) ? reshape(slice(x, 1, at, at + 1), {-1, 1, 1}) : Tensor(); }

/// Σ_c f(q_ic, k_jc, w_c): [B, H, n, m].
Tensor composed_sums(AttentionForm const& form, AttentionInputs const& in) {
  Tensor const q = split_heads(in.query, form.heads), k = heads_of_groups(in.key, form.heads, form.groups());
  return form.sum ? form.sum->composed(q, k, in.weight) : scale(matmul(q, k, false, true), form.scale);
}

/// Scores from sums.
Tensor composed_scores(AttentionForm const& form, AttentionInputs const& in, Tensor e) {
  Index const queries = e.size(2), keys = e.size(3);
  if (form.finish) {
    auto const positions = [&](Index count, Shape const& shape) { return Tensor::arange(count, e.dtype()).viewed(shape); };
    FinishInputs at{positions(queries, {queries, 1}) - positions(keys, {1, keys}) + static_cast<double>(form.visibility.offset),
                    in.of_query.defined() ? unsqueeze(in.of_query, 3) : Tensor(),
                    in.of_key.defined() ? unsqueeze(in.of_key, 2) : Tensor(),
                    column(in.parameter, 0),
                    column(in.parameter, 1),
                    std::sqrt(static_cast<double>(in.query.size(2) / form.heads))};
    e = form.finish->composed(e, at);
  }
  if (form.softcap) e = scale(tanh(scale(e, 1 / *form.softcap)), *form.softcap);
  if (in.relative.defined()) e = e + relative_bias(in.relative, queries, keys);
  if (in.near.defined()) e = e + near_bias(in.near, form.visibility.offset, keys);
  if (in.of_row.defined()) e = e + (unsqueeze(in.of_row, 3) + unsqueeze(in.of_column, 2));
  return e;
}

/// 1 at the keys in each row's range: visible and inside its window.
Tensor range_mask(AttentionForm const& form, AttentionInputs const& in, Tensor const& scores) {
  Index const queries = scores.size(2), keys = scores.size(3);
  Visibility const& sees = form.visibility;
  if (form.window <= 0) return sees.mask(queries, keys, scores.dtype());
  Tensor centres = in.centres.detach();
  if (!in.centres.defined())
    centres = reshape(Tensor::arange(queries, scores.dtype()) + static_cast<double>(sees.offset), {1, 1, queries, 1});
  return window_mask(centres, form.window, sees, keys);
}

/// The context with these weights; `factors`: given factors of dropout instead of drawn ones.
ScoredContext composed_context(AttentionForm const& form, Tensor const& value, Tensor const& weights, Tensor const& factors) {
  ReadWeights const r = form.hard ? composed_read(*form.hard, weights, form.visibility) : ReadWeights{weights, {}, {}};
  Tensor read = r.read;
  if (factors.defined())
    read = read * factors;
  else if (form.dropout)
    read = dropout(read, form.dropout->rate, form.dropout->stream);
  return {merge_heads(matmul(read, heads_of_groups(value, form.heads, form.groups()))), r.probability, r.entropy};
}

}  // namespace

Tensor composed_rows(AttentionForm const& form, AttentionInputs const& in, ComposedAttention const& composed) {
  Visibility const& sees = form.visibility;
  return attention_rows(composed.scores, composed.weights, range_mask(form, in, composed.scores), sees.offset, sees.first_key);
}

Tensor composed_weights(AttentionForm const& form, AttentionInputs const& in, Tensor const& scores) {
  Index const queries = scores.size(2), keys = scores.size(3);
  Visibility const& sees = form.visibility;
  Tensor const mask = range_mask(form, in, scores);
  Tensor const weights = form.align ? form.align->composed(scores, mask, sees.counts(queries, keys, scores.dtype()),
                                                           in.align_of_row.defined() ? in.align_of_row : in.align)
                                    : masked_softmax(scores, mask);
  return form.gaussian ? weights * gaussian_around(in.centres, form.deviation, keys) : weights;
}

ComposedAttention composed_attention(AttentionForm const& form, AttentionInputs const& in, ComposedParts const& parts) {
  ComposedAttention all;
  all.scores = composed_scores(form, in, parts.sums.defined() ? parts.sums : composed_sums(form, in));
  if (parts.bias.defined()) all.scores = all.scores + parts.bias;
  all.weights = composed_weights(form, in, all.scores);
  if (in.value.defined()) all.read = composed_context(form, in.value, all.weights, parts.factors);
  return all;
}

Tensor attention_reference(AttentionForm const& form, AttentionInputs const& in) { return joined_read(composed_attention(form, in).read); }

}  // namespace heed
