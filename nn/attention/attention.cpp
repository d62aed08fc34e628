#include "nn/attention/attention.hpp"

#include <utility>

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

namespace {

thread_local bool reference_only = false;

/// The step with the keys that a cache has dropped, as zeros.
AttentionStep from_start(AttentionStep step) {
  Index const dropped = std::exchange(step.visibility.first_key, 0);
  if (dropped == 0) return step;
  step.visibility.offset += dropped;
  for (Tensor* const of_keys : {&step.scores, &step.weights})
    if (of_keys->defined()) *of_keys = pad(*of_keys, -1, dropped, 0);
  step.key = pad(step.key, 1, dropped, 0);
  return step;
}

template <class Step>
std::unique_ptr<Step> make_step(std::string const& name, Scope const& scope, AttentionSettings const& settings, HeadShape const& shape) {
  return Registry<StepKind<Step>>::at(name, "attention: there is no").make(scope, settings, shape);
}

}  // namespace

ReferenceAttention::ReferenceAttention() : Temporarily(reference_only, true) {}
bool ReferenceAttention::alive() { return reference_only; }

Attention::Attention(Scope const& scope, AttentionSettings const& settings, HeadShape const& shape, double dropout,
                     Position const* position, AttentionParts parts)
    : part_(scope.path()),
      parts_(std::move(parts)),
      heads_(shape.heads),
      key_heads_(shape.key_heads > 0 ? shape.key_heads : shape.heads),
      dropout_(dropout),
      softcap_(settings.softcap),
      score_(make_step<Score>(settings.score, scope.at("score"), settings, shape)),
      align_(make_step<Align>(settings.align, scope.at("align"), settings, shape)),
      read_(make_step<Read>(settings.read, scope.at("read"), settings, shape)),
      position_(position != nullptr ? position->in_attention(scope, shape.heads, shape.width) : nullptr) {}

Attention::Call Attention::call(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility,
                                ForgetBias const& forget_bias) const {
  Call call{{.heads = heads_, .visibility = visibility, .softcap = softcap_, .key_heads = key_heads_}, {query, key, value}};
  score_->fill(call.form, call.in);
  align_->fill(call.form, call.in, query);
  call.in.of_row = forget_bias.of_query, call.in.of_column = forget_bias.of_key;
  if (!position_) return call;
  if (position_->is_by_distance(query.size(1), visibility)) {
    call.in.relative = position_->relative(query.size(1), key.size(1), visibility);
    call.in.near = position_->near(query, heads_);
  } else {
    call.bias = position_->bias(split_heads(query, heads_), key.size(1), visibility);
  }
  return call;
}

Tensor Attention::operator()(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility, Pass const& pass,
                             ForgetBias const& forget_bias, std::string const& part) const {
  auto [form, in, bias] = call(query, key, value, visibility, forget_bias);
  if (pass.drops(dropout_)) form.dropout = {dropout_, pass.training.noise->child(part_ + ".weights")};
  form.hard = read_->choice({query.size(0), heads_, query.size(1), key.size(1)}, visibility, pass, part_ + ".read");
  AttentionStep step{{}, {}, visibility, query, key, parts_};
  ScoredContext read;
  if (reference_only || pass.watches_attention() || bias.defined()) {
    ComposedAttention const all = composed_attention(form, in, {.bias = bias});
    if (pass.watches_attention()) step.scores = all.scores, step.weights = all.weights, step.key = of_all_heads(key);
    if (pass.watches_rows()) step.rows = composed_rows(form, in, all);
    read = all.read;
  } else {
    read = parted_read(form, fused_attention(form, in, pass.watches_rows() ? &step.rows : nullptr));
  }
  if (pass.watches_attention() || step.rows.defined())
    pass.watching.observer->attention->add(part.empty() ? part_ : part, from_start(step));
  if (read.probability.defined()) {
    auto const reach = visibility.causal ? HardChoices::Reach::later : HardChoices::Reach::sequence;
    pass.watching.hard_choices->made.push_back({read.probability, read.entropy, reach});
  }
  return read.context;
}

Tensor Attention::of_all_heads(Tensor const& x) const {
  return key_heads_ == heads_ ? x : merge_heads(heads_of_groups(x, heads_, key_heads_));
}

std::vector<Tensor> Attention::kinks(Tensor const& query, Tensor const& key, Visibility const& visibility) const {
  return {score_->kinks(split_heads(query, heads_), heads_of_groups(key, heads_, key_heads_)),
          position_ ? position_->kinks(query.size(1), key.size(1), visibility) : Tensor()};
}

}  // namespace heed
