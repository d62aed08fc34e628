#include "nn/attention/attention.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"

namespace heed {

namespace {

thread_local bool reference_only = false;

template <class Step>
std::unique_ptr<Step> make_step(std::string const& name, Scope const& scope, AttentionSettings const& settings, HeadShape const& shape) {
  auto const& kinds = step_kinds<Step>();
  auto const found = std::ranges::find(kinds, name, &StepKind<Step>::name);
  if (found == kinds.end()) throw Error(fmt::format("attention: there is no '{}'", name));
  return found->make(scope, settings, shape);
}

}  // namespace

ReferenceAttention::ReferenceAttention() : before_(std::exchange(reference_only, true)) {}
ReferenceAttention::~ReferenceAttention() { reference_only = before_; }

Attention::Attention(Scope const& scope, AttentionSettings const& settings, HeadShape const& shape, double dropout,
                     Position const* position, LookingParts parts)
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

Tensor Attention::operator()(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility, Pass const& pass,
                             Fading const& fading, std::string const& part) const {
  bool const by_distance = !position_ || position_->is_by_distance();
  if (!reference_only && by_distance && !softcap_ && !fading.of_key.defined() && !pass.watches_attention() && read_->is_expectation()) {
    auto const score = score_->fused(query, heads_);
    auto const align = align_->fused(query, heads_, key.size(1), visibility);
    if (score && align) {
      AttentionForm form{heads_, visibility, score->kind, score->scale, align->window, align->gaussian, align->deviation};
      if (pass.drops(dropout_)) form.dropout = {dropout_, pass.noise->child(part_ + ".weights")};
      Tensor const relative = position_ ? position_->relative(query.size(1), key.size(1), visibility) : Tensor();
      return fused_attention(form, score->query, repeated(key), repeated(value), score->parameter, relative, align->centres);
    }
  }
  return reference(query, key, value, visibility, pass, fading, part);
}

Tensor Attention::reference(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility, Pass const& pass,
                            Fading const& fading, std::string const& part) const {
  Tensor const keys = repeated(key);
  auto const [e, a] = scored(query, keys, visibility, fading);
  if (pass.watches_attention()) pass.observer->attention(part.empty() ? part_ : part, {e, a, visibility, query, keys, parts_});
  Tensor const read = (*read_)(a, visibility, pass, part_ + ".read");
  return merge_heads(matmul(pass.dropout(read, dropout_, part_ + ".weights"), split_heads(repeated(value), heads_)));
}

Tensor Attention::repeated(Tensor const& x) const {
  if (key_heads_ == heads_) return x;
  std::int64_t const width = x.size(2) / key_heads_;
  Tensor const apart = reshape(x, {x.size(0), x.size(1), key_heads_, 1, width});
  return reshape(expand(apart, {x.size(0), x.size(1), key_heads_, heads_ / key_heads_, width}), {x.size(0), x.size(1), heads_ * width});
}

Tensor Attention::weights(Tensor const& query, Tensor const& key, Visibility const& visibility) const {
  return scored(query, repeated(key), visibility, {}).weights;
}

std::vector<Tensor> Attention::corners(Tensor const& query, Tensor const& key, Visibility const& visibility) const {
  return {score_->corners(split_heads(query, heads_), split_heads(repeated(key), heads_)),
          position_ ? position_->corners(query.size(1), key.size(1), visibility) : Tensor()};
}

Attention::Scored Attention::scored(Tensor const& query, Tensor const& key, Visibility const& visibility, Fading const& fading) const {
  Tensor const q = split_heads(query, heads_);
  Tensor scores = (*score_)(q, split_heads(key, heads_));
  if (softcap_) scores = scale(tanh(scale(scores, 1 / *softcap_)), *softcap_);
  Tensor const bias = position_ ? position_->bias(q, key.size(1), visibility) : Tensor();
  if (bias.defined()) scores = scores + bias;
  if (fading.of_key.defined()) scores = scores + unsqueeze(fading.of_query, 3) + unsqueeze(fading.of_key, 2);
  return {scores, (*align_)(scores, q, visibility)};
}

}  // namespace heed
