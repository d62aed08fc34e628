#include <cmath>
#include <utility>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/attention/attention.hpp"

namespace heed {

namespace {

Index groups(MultiHead::Dimensions const& shape) { return shape.key_heads > 0 ? shape.key_heads : shape.heads; }

Tensor norm_weight(bool wanted, Scope const& scope, Index width) {
  return wanted ? scope.parameter("weight", {width}, Initial::constant(1), WeightDecay::off) : Tensor();
}

/// Queries or keys of one map, from those of both [B, T, heads · 2 · width]: [B, T, heads · width].
Tensor of_map(Tensor const& x, Index map, Index width) {
  Index const heads = x.size(2) / (2 * width);
  Tensor const apart = reshape(x, {x.size(0), x.size(1), heads, 2 * width});
  return reshape(slice(apart, 3, map * width, (map + 1) * width), {x.size(0), x.size(1), heads * width});
}

}  // namespace

MultiHead::MultiHead(Scope const& scope, AttentionSettings const& settings, Dimensions const& shape, bool bias, double dropout,
                     double residual_scale, Position const* position, AttentionParts parts)
    : part_(scope.path()),
      shape_(shape),
      query_(scope.at("query"), shape.width, (settings.differential ? 2 : 1) * shape.heads * shape.key_width, bias,
             Initial::weight(1, shape.query_key_spread)),
      key_(scope.at("key"), shape.width, (settings.differential ? 2 : 1) * groups(shape) * shape.key_width, bias,
           Initial::weight(1, shape.query_key_spread)),
      value_(scope.at("value"), shape.width, groups(shape) * shape.value_width, bias),
      output_(scope.at("output"), shape.heads * shape.value_width, shape.width, bias, Initial::weight(residual_scale)),
      gate_(linear_if(settings.gate, scope.at("gate"), shape.width, shape.heads * shape.value_width, bias)),
      forget_(linear_if(settings.forget, scope.at("forget"), shape.width, shape.heads, true)),
      query_norm_(norm_weight(settings.query_key_norm == "rms", scope.at("query_norm"), shape.key_width)),
      key_norm_(norm_weight(settings.query_key_norm == "rms", scope.at("key_norm"), shape.key_width)),
      attention_(scope, settings, {shape.heads, shape.key_width, shape.context, 0, groups(shape), shape.scale_factor}, dropout, position,
                 std::move(parts)) {
  if (settings.differential) differential_.emplace(scope, shape);
  if (settings.convolution) convolutions_.emplace(scope.at("convolution"), *settings.convolution, query_, key_, value_);
}

MultiHead::Differential::Differential(Scope const& scope, Dimensions const& shape)
    : start(0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(shape.layer))) {
  auto const vector = [&](char const* name) {
    return scope.at("lambda").parameter(name, {shape.key_width}, Initial::normal(0.1), WeightDecay::off);
  };
  query1 = vector("query1"), key1 = vector("key1"), query2 = vector("query2"), key2 = vector("key2");
  norm = norm_weight(true, scope.at("differential_norm"), shape.value_width);
}

Tensor MultiHead::Differential::lambda() const { return exp(sum(query1 * key1)) - exp(sum(query2 * key2)) + start; }

Tensor MultiHead::operator()(Tensor const& x, Tensor const& memory, Visibility const& visibility, Pass const& pass, std::size_t layer,
                             Tensor const& residual) const {
  Visibility sees = visibility;
  sees.sees = shape_.sees;
  if (pass.decoding.cache == nullptr) return attend(x, project(memory, 0), sees, pass, residual);
  // Keys are cached after rotation: positions of earlier tokens do not change.
  KeyValueCache::Layer& kept = pass.decoding.cache->layers.at(layer);
  Projected const fresh = project(memory, visibility.offset, &kept);
  auto const appended = [&](GrowingRows& rows, Tensor const& more) { return rows.append(more, shape_.sees); };
  Projected const all{appended(kept.key, fresh.key), appended(kept.value, fresh.value),
                      forget_ ? appended(kept.forget, fresh.forget) : Tensor()};
  sees.first_key = kept.key.dropped();
  sees.offset -= sees.first_key;
  return attend(x, all, sees, pass, residual, &kept);
}

Tensor MultiHead::positioned(Tensor const& x, Tensor const& norm, Index offset) const {
  return attention_.rotated(norm.defined() ? norm_of_heads(x, norm) : x, offset);
}

Projected MultiHead::project(Tensor const& memory, Index offset, KeyValueCache::Layer* kept) const {
  ModelPart const here(part_);
  Tensor key = key_(memory), value = value_(memory);
  if (convolutions_) {
    key = convolutions_->key(key, kept != nullptr ? &kept->key_tail : nullptr);
    value = convolutions_->value(value, kept != nullptr ? &kept->value_tail : nullptr);
  }
  Tensor const forget = forget_ ? -softplus(-(*forget_)(memory)) : Tensor();
  return {positioned(key, key_norm_, offset), value, forget};
}

Projected MultiHead::project_once(Tensor const& memory, Pass const& pass, std::size_t layer) const {
  if (pass.decoding.cache == nullptr) return project(memory, 0);
  auto& kept = pass.decoding.cache->layers.at(layer).memory;
  if (!kept) kept = project(memory, 0);
  return *kept;
}

Tensor MultiHead::attend(Tensor const& x, Projected const& memory, Visibility const& visibility, Pass const& pass, Tensor const& residual,
                         KeyValueCache::Layer* kept) const {
  ModelPart const here(part_);
  Tensor projected = query_(x);
  if (convolutions_) projected = convolutions_->query(projected, kept != nullptr ? &kept->query_tail : nullptr);
  Tensor const query = positioned(projected, query_norm_, visibility.first_key + visibility.offset);
  Tensor const read = pass.read_instead(part_, context(query, memory, visibility, pass));
  return output_(gate_ ? read * sigmoid((*gate_)(x)) : read, residual);
}

Tensor MultiHead::context(Tensor const& query, Projected const& memory, Visibility const& visibility, Pass const& pass) const {
  ForgetBias const bias = forget_ ? forget_bias(memory, query.size(1), visibility.offset) : ForgetBias();
  if (!differential_) return attention_(query, memory.key, memory.value, visibility, pass, bias);
  // The same mask for both maps: dropout of their difference.
  auto const read = [&](Index map) {
    Tensor const q = of_map(query, map, shape_.key_width), k = of_map(memory.key, map, shape_.key_width);
    return attention_(q, k, memory.value, visibility, pass, bias, part_ + (map == 0 ? ".first" : ".second"));
  };
  Tensor const first = read(0);  // fixed order, with and without observers
  return scale(norm_of_heads(first - differential_->lambda() * read(1), differential_->norm), 1 - differential_->start);
}

ForgetBias MultiHead::forget_bias(Projected const& memory, Index queries, Index offset) const {
  Tensor const sums = permute(cumsum(memory.forget, 1), {0, 2, 1});  // [B, H, m]
  return {slice(sums, 2, offset, offset + queries), -sums};
}

}  // namespace heed
