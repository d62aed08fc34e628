#include "nn/attention/attention.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"

namespace heed {

namespace {

template <class Step>
std::unique_ptr<Step> make_step(std::string const& name, Scope const& scope, AttentionSettings const& settings, HeadShape const& shape) {
  auto const& kinds = step_kinds<Step>();
  auto const found = std::ranges::find(kinds, name, &StepKind<Step>::name);
  if (found == kinds.end()) throw Error(fmt::format("attention: there is no '{}'", name));
  return found->make(scope, settings, shape);
}

}  // namespace

Attention::Attention(Scope const& scope, AttentionSettings const& settings, HeadShape const& shape, double dropout)
    : part_(scope.path()),
      heads_(shape.heads),
      dropout_(dropout),
      score_(make_step<Score>(settings.score, scope.at("score"), settings, shape)),
      align_(make_step<Align>(settings.align, scope.at("align"), settings, shape)),
      read_(make_step<Read>(settings.read, scope.at("read"), settings, shape)) {}

Tensor Attention::operator()(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility,
                             Pass const& pass) const {
  bool const drops = pass.noise && dropout_ > 0;
  if (auto const scale = score_->constant_dot(); scale && align_->is_softmax() && read_->is_expectation() && !drops) {
    return scaled_dot_attention(query, key, value, heads_, *scale, visibility);
  }
  return reference(query, key, value, visibility, pass);
}

Tensor Attention::reference(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility,
                            Pass const& pass) const {
  Tensor const kept = pass.dropout(weights(query, key, visibility), dropout_, part_ + ".weights");
  return merge_heads((*read_)(kept, split_heads(value, heads_)));
}

Tensor Attention::weights(Tensor const& query, Tensor const& key, Visibility const& visibility) const {
  return (*align_)((*score_)(split_heads(query, heads_), split_heads(key, heads_)), visibility);
}

MultiHead::MultiHead(Scope const& scope, AttentionSettings const& settings, Shape const& shape, bool bias, double dropout, double residual)
    : part_(scope.path()),
      query_(scope.at("query"), shape.width, shape.heads * shape.key_width, bias),
      key_(scope.at("key"), shape.width, shape.heads * shape.key_width, bias),
      value_(scope.at("value"), shape.width, shape.heads * shape.value_width, bias),
      output_(scope.at("output"), shape.heads * shape.value_width, shape.width, bias, Initial::weight(residual)),
      attention_(scope, settings, {shape.heads, shape.key_width, shape.context}, dropout) {}

Tensor MultiHead::operator()(Tensor const& x, Tensor const& memory, Visibility const& visibility, Pass const& pass,
                             std::size_t layer) const {
  Part const here(part_);
  Tensor key = key_(memory);
  Tensor value = value_(memory);
  if (pass.cache != nullptr) {
    KeyValueCache::Layer& kept = pass.cache->layers.at(layer);
    if (kept.key.defined()) {
      key = concatenate({kept.key, key}, 1);
      value = concatenate({kept.value, value}, 1);
    }
    kept = {key, value};
  }
  return output_(attention_(query_(x), key, value, visibility, pass));
}

}  // namespace heed
