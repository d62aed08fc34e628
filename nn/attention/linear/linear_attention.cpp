#include "nn/attention/linear/linear_attention.hpp"

#include <vector>

#include "autograd/attention/row_statistics.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

namespace {

/// The tokens of x [B, T, ·] from the last one that counts to the first; padding stays in its place.
Tensor reversed(Tensor const& x, Tensor const& lengths) {
  if (!x.defined()) return x;
  Index const batch = x.size(0), length = x.size(1);
  std::vector<Index> rows;
  for (Index b = 0; b < batch; ++b) {
    Index const count = lengths.defined() ? heed::at(lengths.data<std::int64_t>(), b) : length;
    for (Index t = 0; t < length; ++t) rows.push_back(b * length + (t < count ? count - 1 - t : t));
  }
  return reshape(take(reshape(x, {batch * length, x.size(2)}), rows), {batch, length, x.size(2)});
}

/// One row per token, x [B, T, ·], as the first or the last of `steps` rows [B, n·T, ·], the others zeros.
Tensor among_steps(Tensor const& x, Index steps, bool first) {
  if (!x.defined() || steps == 1) return x;
  Tensor const apart = pad(unsqueeze(x, 2), 2, first ? 0 : steps - 1, first ? steps - 1 : 0);
  return reshape(apart, {x.size(0), x.size(1) * steps, x.size(2)});
}

/// The rows of each token, x [B, T, n·…] → [B, n·T, …].
Tensor in_steps(Tensor const& x, Index steps) {
  return !x.defined() || steps == 1 ? x : reshape(x, {x.size(0), x.size(1) * steps, x.size(2) / steps});
}

}  // namespace

LinearAttention::LinearAttention(Scope const& scope, AttentionSettings const& settings, MultiHead::Dimensions const& shape, bool bias,
                                 double residual_scale, Position const* position, AttentionParts parts)
    : part_(scope.path()),
      parts_(std::move(parts)),
      shape_(shape),
      settings_(settings.of_linear),
      scale_(fixed_scale(settings.scale, to_double(shape.key_width)).value_or(1)),
      query_(scope.at("query"), shape.width, settings_.groups.value_or(shape.heads) * shape.key_width, bias,
             Initial::weight(1, shape.query_key_spread)),
      key_(scope.at("key"), shape.width, settings_.steps * query_.weight.size(0), bias, Initial::weight(1, shape.query_key_spread)),
      value_(scope.at("value"), shape.width, settings_.steps * shape.heads * shape.value_width, bias),
      output_(scope.at("output"), shape.heads * shape.value_width, shape.width, bias, Initial::weight(residual_scale)),
      gate_(linear_if(settings_.output_gate != "none", scope.at("gate"), shape.width, shape.heads * shape.value_width, bias)),
      feature_(&Registry<FeatureKind>::at(settings_.feature, "attention: there is no feature")),
      decay_(Registry<DecayKind>::at(settings_.decay, "attention: there is no decay")
                 .make(scope.at("decay"), settings_, {shape.width, shape.heads, shape.key_width})),
      write_(Registry<WriteKind>::at(settings_.write, "attention: there is no write")
                 .make(scope.at("strength"), settings_, {shape.width, shape.heads, shape.key_width})),
      position_(position != nullptr ? position->in_attention(scope, shape.heads, shape.key_width) : nullptr) {
  if (settings.convolution) convolutions_.emplace(scope.at("convolution"), *settings.convolution, query_, key_, value_);
  Index const normed = settings_.output_norm == "head" ? shape.value_width : shape.heads * shape.value_width;
  if (settings_.output_norm != "none")
    output_norm_ = scope.at("output_norm").parameter("weight", {normed}, Initial::constant(1), WeightDecay::off);
  if (settings_.skip) skip_ = scope.parameter("skip", {shape.heads}, Initial::constant(1), WeightDecay::off);
}

Tensor LinearAttention::operator()(Tensor const& x, Visibility const& visibility, Pass const& pass, std::size_t layer,
                                   Tensor const& residual) const {
  ModelPart const here(part_);
  KeyValueCache::Layer* const kept = pass.decoding.cache != nullptr ? &pass.decoding.cache->layers.at(layer) : nullptr;
  LinearInputs const in = inputs(x, visibility.offset, kept);
  Tensor context = read(in, x, visibility, kept);
  if ((pass.watches_attention() || pass.watches_rows()) && kept == nullptr) observe(in, x, visibility, pass);
  if (skip_.defined()) context = context + times_per_head(in.value, reshape(skip_, {1, 1, shape_.heads}));
  context = pass.read_instead(part_, context);
  if (settings_.output_norm == "head") context = norm_of_heads(context, output_norm_);
  if (gate_) context = context * (settings_.output_gate == "silu" ? silu((*gate_)(x)) : sigmoid((*gate_)(x)));
  if (settings_.output_norm == "whole") context = rms_norm(context, output_norm_);
  return output_(context, residual);
}

LinearInputs LinearAttention::inputs(Tensor const& x, Index offset, KeyValueCache::Layer* kept) const {
  Tensor query = query_(x), key = key_(x), value = value_(x);
  if (convolutions_) {
    query = convolutions_->query(query, kept != nullptr ? &kept->query_tail : nullptr);
    key = convolutions_->key(key, kept != nullptr ? &kept->key_tail : nullptr);
    value = convolutions_->value(value, kept != nullptr ? &kept->value_tail : nullptr);
  }
  if (settings_.activation == "silu") query = silu(query), key = silu(key), value = silu(value);
  if (position_) {
    query = position_->rotate(query, offset);
    key = reshape(position_->rotate(in_steps(key, settings_.steps), offset * settings_.steps), {key.size(0), key.size(1), key.size(2)});
  }
  Tensor const q = with_feature(query);
  return {scale_ == 1 ? q : scale(q, scale_), with_feature(key), value};
}

Tensor LinearAttention::with_feature(Tensor const& x) const {
  Index const d = shape_.key_width, count = x.size(2) / d, shared = shape_.heads / settings_.groups.value_or(shape_.heads);
  Tensor const apart = feature_->apply(reshape(x, {x.size(0), x.size(1), count, d}));
  if (shared == 1) return reshape(apart, {x.size(0), x.size(1), x.size(2)});
  return reshape(expand(unsqueeze(apart, 3), {x.size(0), x.size(1), count, shared, d}), {x.size(0), x.size(1), count * shared * d});
}

Tensor LinearAttention::read(LinearInputs const& in, Tensor const& x, Visibility const& visibility, KeyValueCache::Layer* kept) const {
  LinearInputs decayed = in;
  Tensor const step = decay_->fill(decayed, x);
  LinearInputs written = decayed;
  write_->fill(written, x, step);
  Tensor const context = recurrence(written, visibility, kept != nullptr ? &kept->state : nullptr);
  if (settings_.normaliser == "none") return context;
  decayed.value = Tensor::full({x.size(0), x.size(1), settings_.steps * shape_.heads}, 1, x.dtype());
  Tensor const total = recurrence(decayed, visibility, kept != nullptr ? &kept->normaliser : nullptr);  // q̂·z_t
  return times_per_head(context, 1.0 / (total + 1e-6));
}

Tensor LinearAttention::recurrence(LinearInputs in, Visibility const& visibility, Tensor* state) const {
  Index const steps = settings_.steps;
  auto const run = [&](LinearForm const& form, LinearInputs const& one, bool wants_state) {
    LinearInputs const all{among_steps(one.query, steps, form.read_first),
                           in_steps(one.key, steps),
                           in_steps(one.value, steps),
                           in_steps(one.erase, steps),
                           among_steps(one.log_decay, steps, true),
                           one.state};
    auto [context, last] = (ReferenceAttention::alive() ? linear_attention_reference : linear_attention)(form, all, wants_state);
    if (steps == 1) return LinearResult{context, last};
    Tensor const apart = reshape(context, {one.query.size(0), one.query.size(1), steps, context.size(2)});
    Index const read = form.read_first ? 0 : steps - 1;
    return LinearResult{squeeze(slice(apart, 2, read, read + 1), 2), last};
  };
  if (state != nullptr) in.state = *state;
  bool const single = state != nullptr && in.query.size(1) == 1;
  LinearResult const forward = run({.heads = shape_.heads, .by_steps = single}, in, state != nullptr);
  if (state != nullptr) *state = forward.state;
  if (visibility.causal) return forward.context;
  auto const back = [&](Tensor const& x) { return reversed(x, visibility.lengths); };
  LinearInputs const later{back(in.query), back(in.key), back(in.value), back(in.erase), back(in.log_decay)};
  return forward.context + back(run({.heads = shape_.heads, .read_first = true}, later, false).context);
}

void LinearAttention::observe(LinearInputs const& in, Tensor const& x, Visibility const& visibility, Pass const& pass) const {
  Index const batch = x.size(0), length = x.size(1), heads = shape_.heads, values = settings_.steps * heads;
  Tensor const each = one_hot(Tensor::arange(length, DType::int64), length, x.dtype());  // the value of token j is the unit vector j
  LinearInputs unit = in;
  unit.value = reshape(expand(reshape(each, {1, length, 1, length}), {batch, length, values, length}), {batch, length, values * length});
  Tensor const weights = permute(reshape(read(unit, x, visibility, nullptr), {batch, length, heads, length}), {0, 2, 1, 3});
  AttentionStep step{{}, weights, visibility, in.query, in.key, parts_};
  if (pass.watches_rows())
    step.rows = attention_rows({}, abs(weights), visibility.mask(length, length, weights.dtype()), visibility.offset);
  LinearInputs decayed = in;
  decay_->fill(decayed, x);
  step.log_decay = decayed.log_decay;
  KeyValueCache::Layer last;
  read(in, x, visibility, &last);
  step.state = last.state;
  pass.watching.observer->attention->add(part_, step);
}

}  // namespace heed
