#include "nn/attention/attention.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

namespace {

thread_local bool reference_only = false;

template <class Step>
std::unique_ptr<Step> make_step(std::string const& name, Scope const& scope, AttentionSettings const& settings, HeadShape const& shape) {
  return Registry<StepKind<Step>>::at(name, "attention: there is no").make(scope, settings, shape);
}

}  // namespace

ReferenceAttention::ReferenceAttention() : before_(std::exchange(reference_only, true)) {}
ReferenceAttention::~ReferenceAttention() { reference_only = before_; }

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
  auto const found = score_->fused(query, key, {heads_, key_heads_});
  FusedScore const score = found ? *found : FusedScore{query};
  FusedAlign const align = align_->fused(query, heads_, key.size(1), visibility);
  Call call{{.heads = heads_, .visibility = visibility, .scale = score.scale}, {}, found.has_value()};
  auto& form = call.form;
  auto& in = call.in;
  form.sum = score.sum, form.finish = score.finish, form.softcap = softcap_;
  form.align = align.rows, form.window = align.window, form.gaussian = align.gaussian, form.deviation = align.deviation;
  bool const own_keys = score.key.defined();
  form.key_heads = own_keys ? heads_ : key_heads_;
  in.query = score.query, in.key = own_keys ? score.key : key, in.value = own_keys && value.defined() ? repeated(value) : value;
  in.weight = score.weight, in.parameter = score.parameter, in.of_query = score.of_query, in.of_key = score.of_key;
  if (by_distance(query, visibility)) {
    in.relative = position_->relative(query.size(1), key.size(1), visibility);
    in.near = position_->near(query, heads_);
  }
  in.of_row = forget_bias.of_query, in.of_column = forget_bias.of_key;
  in.centres = align.centres, in.align = align.parameter;
  return call;
}

bool Attention::by_distance(Tensor const& query, Visibility const& visibility) const {
  return position_ && position_->is_by_distance(query.size(1), visibility);
}

Tensor Attention::operator()(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility, Pass const& pass,
                             ForgetBias const& forget_bias, std::string const& part) const {
  bool const composed = position_ && !by_distance(query, visibility);
  if (reference_only || composed || pass.watches_attention()) return reference(query, key, value, visibility, pass, forget_bias, part);
  Call fused = call(query, key, value, visibility, forget_bias);
  if (!fused.by_formulas) return reference(query, key, value, visibility, pass, forget_bias, part);
  if (pass.drops(dropout_)) fused.form.dropout = {dropout_, pass.training.noise->child(part_ + ".weights")};
  fused.form.hard = read_->choice({query.size(0), heads_, query.size(1), key.size(1)}, visibility, pass, part_ + ".read");
  Tensor rows;
  Tensor const result = fused_attention(fused.form, fused.in, pass.watches_rows() ? &rows : nullptr);
  if (rows.defined()) pass.watching.observer->attention->add(part.empty() ? part_ : part, {{}, {}, visibility, query, key, parts_, rows});
  if (fused.form.scores_of_choice() == 0) return result;
  ScoredContext const read = parted_read(result, heads_);
  Read::tell(pass, visibility, read.probability, read.entropy);
  return read.context;
}

Tensor Attention::reference(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility, Pass const& pass,
                            ForgetBias const& forget_bias, std::string const& part) const {
  Tensor const keys = repeated(key);
  Tensor rows;
  auto const [e, a] = scored(query, key, visibility, forget_bias, pass.watches_rows() ? &rows : nullptr);
  std::string const& name = part.empty() ? part_ : part;
  if (pass.watches_attention() || rows.defined())
    pass.watching.observer->attention->add(name, {e, a, visibility, query, keys, parts_, rows});
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
  return scored(query, key, visibility, {}).weights;
}

std::vector<Tensor> Attention::kinks(Tensor const& query, Tensor const& key, Visibility const& visibility) const {
  return {score_->kinks(split_heads(query, heads_), split_heads(repeated(key), heads_)),
          position_ ? position_->kinks(query.size(1), key.size(1), visibility) : Tensor()};
}

Attention::Scored Attention::scored(Tensor const& query, Tensor const& key, Visibility const& visibility, ForgetBias const& forget_bias,
                                    Tensor* rows) const {
  auto [form, in, by_formulas] = call(query, key, {}, visibility, forget_bias);
  Tensor const q = split_heads(query, heads_);
  Tensor const sums = by_formulas ? composed_sums(form, in) : (*score_)(q, split_heads(repeated(key), heads_));
  Tensor scores = composed_scores(form, in, sums);
  if (position_ && !by_distance(query, visibility)) scores = scores + position_->bias(q, key.size(1), visibility);
  Tensor const weights = composed_weights(form, in, scores);
  if (rows != nullptr) *rows = composed_rows(form, in, scores, weights);
  return {scores, weights};
}

}  // namespace heed
