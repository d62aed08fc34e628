#include "nn/models/transformer_stack.hpp"

#include <algorithm>
#include <cmath>

#include "autograd/operations.hpp"

namespace heed {

namespace {

/// Each of the 2·layers residual branches starts with this share of the usual spread, so that their sum starts as large as one.
double residual_share(StackSettings const& s) { return 1 / std::sqrt(2 * static_cast<double>(s.layers)); }

}  // namespace

TransformerStack::TransformerStack(Parameters& parameters, StackSettings const& settings, std::int64_t vocabulary, Sees sees)
    : settings_(settings),
      sees_(sees),
      tokens_(Scope(parameters).at("token_embedding"), vocabulary, settings.width),
      blocks_(Scope(parameters), settings, sees == Sees::past, residual_share(settings)),
      head_(settings.tie ? tokens_.weight : Embedding(Scope(parameters).at("head"), vocabulary, settings.width).weight) {}

Tensor TransformerStack::logits(Batch const& batch, Pass const& pass) const {
  auto const head = linear_head(batch, pass);
  return linear(head->x, head->weight, head->bias, {}, pass.rounded);
}

std::optional<LinearHead> TransformerStack::linear_head(Batch const& batch, Pass const& pass) const {
  Visibility visibility{.causal = sees_ == Sees::past, .lengths = {}, .offset = pass.cache != nullptr ? pass.cache->past : 0};
  // Under a causal mask nothing that counts sees the padding, which stands behind it.
  if (!visibility.causal) visibility.lengths = visibility.query_lengths = batch.lengths;
  Tensor const x = blocks_(blocks_.embedded(tokens_(batch.inputs), pass), visibility, pass);
  if (pass.cache != nullptr) pass.cache->past += batch.inputs.size(1);
  return LinearHead{x, head_, {}};
}

double TransformerStack::peak_bytes(PassShape const& shape) const {
  StackBytes const stack = blocks_.bytes(shape);
  // Where random choices are scored, the logits are whole.
  bool const whole = shape.recorded && shape.trains && estimator() != nullptr;
  double const logits = logits_bytes(shape, vocabulary(), head_.dtype(), whole);
  double const last = shape.recorded ? 0 : static_cast<double>(shape.batch * shape.tokens * settings_.width * bytes_of(head_.dtype()));
  return stack.kept + stack.open + std::max(stack.moment, last + logits);
}

double TransformerStack::flops_per_token() const {
  return blocks_.flops_per_token() + 2 * static_cast<double>(settings_.width) * static_cast<double>(vocabulary());
}

}  // namespace heed
