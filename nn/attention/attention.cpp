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
      dropout_(dropout),
      score_(make_step<Score>(settings.score, scope.at("score"), settings, shape)),
      align_(make_step<Align>(settings.align, scope.at("align"), settings, shape)),
      read_(make_step<Read>(settings.read, scope.at("read"), settings, shape)),
      position_(position != nullptr ? position->in_attention(scope, shape.heads, shape.width) : nullptr) {}

Tensor Attention::operator()(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility,
                             Pass const& pass) const {
  bool const depends_on_query = position_ && position_->depends_on_query();
  if (!reference_only && !depends_on_query && !pass.watches_attention() && read_->is_expectation()) {
    auto const score = score_->fused(query, heads_);
    auto const align = align_->fused(query, heads_, key.size(1), visibility);
    if (score && align) {
      AttentionForm form{heads_, visibility, score->kind, score->scale, align->window, align->gaussian, align->deviation};
      if (pass.drops(dropout_)) form.dropout = {dropout_, pass.noise->child(part_ + ".weights")};
      Tensor const relative = position_ ? position_->relative(query.size(1), key.size(1), visibility) : Tensor();
      return fused_attention(form, score->query, key, value, score->parameter, relative, align->centres);
    }
  }
  return reference(query, key, value, visibility, pass);
}

Tensor Attention::reference(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility,
                            Pass const& pass) const {
  auto const [e, a] = scored(query, key, visibility);
  if (pass.watches_attention()) pass.observer->attention(part_, {e, a, visibility, query, key, parts_});
  Tensor const read = (*read_)(a, visibility, pass, part_ + ".read");
  return merge_heads(matmul(pass.dropout(read, dropout_, part_ + ".weights"), split_heads(value, heads_)));
}

Tensor Attention::weights(Tensor const& query, Tensor const& key, Visibility const& visibility) const {
  return scored(query, key, visibility).weights;
}

Tensor Attention::corners(Tensor const& query, Tensor const& key) const {
  return score_->corners(split_heads(query, heads_), split_heads(key, heads_));
}

Attention::Scored Attention::scored(Tensor const& query, Tensor const& key, Visibility const& visibility) const {
  Tensor const q = split_heads(query, heads_);
  Tensor scores = (*score_)(q, split_heads(key, heads_));
  Tensor const bias = position_ ? position_->bias(q, key.size(1), visibility) : Tensor();
  if (bias.defined()) scores = scores + bias;
  return {scores, (*align_)(scores, q, visibility)};
}

MultiHead::MultiHead(Scope const& scope, AttentionSettings const& settings, Shape const& shape, bool bias, double dropout, double share,
                     Position const* position, LookingParts parts)
    : part_(scope.path()),
      query_(scope.at("query"), shape.width, shape.heads * shape.key_width, bias, Initial::weight(1, shape.query_key_spread)),
      key_(scope.at("key"), shape.width, shape.heads * shape.key_width, bias, Initial::weight(1, shape.query_key_spread)),
      value_(scope.at("value"), shape.width, shape.heads * shape.value_width, bias),
      output_(scope.at("output"), shape.heads * shape.value_width, shape.width, bias, Initial::weight(share)),
      attention_(scope, settings, {shape.heads, shape.key_width, shape.context}, dropout, position, std::move(parts)) {}

Tensor MultiHead::operator()(Tensor const& x, Tensor const& memory, Visibility const& visibility, Pass const& pass, std::size_t layer,
                             Tensor const& residual) const {
  if (pass.cache == nullptr) return look(x, project(memory, 0, pass), visibility, pass, residual);
  // Keys are kept rotated: what is read once stays where it stood.
  Projected const fresh = project(memory, visibility.offset, pass);
  KeyValueCache::Layer& kept = pass.cache->layers.at(layer);
  return look(x, {kept.key.append(fresh.key), kept.value.append(fresh.value)}, visibility, pass, residual);
}

Projected MultiHead::project(Tensor const& memory, std::int64_t offset, Pass const& pass) const {
  Part const here(part_);
  Tensor const key = attention_.rotated(key_(memory, pass), offset);
  return {key, value_(memory, pass)};
}

Tensor MultiHead::look(Tensor const& x, Projected const& memory, Visibility const& visibility, Pass const& pass,
                       Tensor const& residual) const {
  Part const here(part_);
  Tensor const query = attention_.rotated(query_(x, pass), visibility.offset);
  return output_(attention_(query, memory.key, memory.value, visibility, pass), pass, residual);
}

}  // namespace heed
