// A GPT, from tokens to logits. B sequences of T tokens; d is the width of the residual stream, V the size of the vocabulary.

#include <cmath>
#include <map>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "nn/decode.hpp"
#include "nn/models/blocks.hpp"

namespace heed {

namespace {

Declared<ModelKind> const gpt_model{model_of<Gpt, GptSettings>(
    "gpt", "decoder-only Transformer, predicts the next token (Radford et al. 2018)", [](Settings const& settings) {
      return head_settings(dynamic_cast<GptSettings const&>(settings).head).reads({.targets = "next_token", .examples = "delimited"});
    })};

std::variant<MultiHead, LinearAttention> self_attention(Scope const& scope, StackSettings const& s, Index layer, Position const& position,
                                                        double residual_scale, AttentionParts const& parts) {
  auto const shape = s.shape_of(s.attention, layer);
  if (s.attention.is_linear()) return LinearAttention(scope, s.attention, shape, s.bias, residual_scale, &position, parts);
  return MultiHead(scope, s.attention, shape, s.bias, s.dropout, residual_scale, &position, parts);
}

}  // namespace

// --- A block: x + attention(norm x), then x + mlp(norm x) --------------------------------------------------------------------------------

Block::Block(Scope const& scope, StackSettings const& s, Index layer, Position const& position, double residual_scale,
             AttentionSettings const* cross, AttentionParts const& parts)
    : path_(scope.path()),
      layer_(static_cast<std::size_t>(layer)),
      attention_residual_(scope, "norm1", "attention", s.width, s.norm, s.dropout),
      attention_(self_attention(scope.at("attention"), s, layer, position, residual_scale, {parts.queries, parts.queries})),
      cross_(cross == nullptr ? std::optional<Cross>()
                              : Cross{Residual(scope, "norm2", "cross_attention", s.width, s.norm, s.dropout),
                                      MultiHead(scope.at("cross_attention"), *cross, s.shape_of(*cross, layer), s.bias, s.dropout,
                                                residual_scale, nullptr, parts)}),
      mlp_residual_(scope, cross == nullptr ? "norm2" : "norm3", "mlp", s.width, s.norm, s.dropout),
      mlp_(scope.at("mlp"), s.width, s.hidden(), s.activation, s.bias, residual_scale) {}

Tensor Block::operator()(Tensor x, Visibility const& sees, Memory const& memory, Pass const& pass) const {
  ModelPart const here(path_);
  x = attention_residual_(x, pass, [&](Tensor const& y, Tensor const& residual) {  // queries, keys and values: all of y [B, T, d]
    if (auto const* const linear = std::get_if<LinearAttention>(&attention_)) return (*linear)(y, sees, pass, layer_, residual);
    return std::get<MultiHead>(attention_)(y, y, sees, pass, layer_, residual);
  });
  if (cross_)
    x = cross_->residual(x, pass, [&](Tensor const& y, Tensor const& residual) {  // keys and values: of the memory [B, S, d]
      return cross_->attention.attend(y, cross_->attention.project_once(memory.x, pass, layer_), memory.visibility, pass, residual);
    });
  x = mlp_residual_(x, pass, [&](Tensor const& y, Tensor const& residual) { return mlp_(y, residual); });  // d → 4 d → d
  if (pass.watches_stream()) pass.watching.observer->stream(path_, x);
  return x;  // [B, T, d]
}

// --- The stack of blocks -----------------------------------------------------------------------------------------------------------------

Blocks::Blocks(Scope const& scope, StackSettings const& s, bool causal, double residual_scale, AttentionSettings const* cross,
               AttentionParts const& parts)
    : settings_(s),
      cross_(cross == nullptr ? std::nullopt : std::optional(*cross)),
      causal_(causal),
      path_(scope.path()),
      position_(make_position(s.position, scope, {s.context, s.width, s.heads})) {
  blocks_.reserve(static_cast<std::size_t>(s.layers));
  std::map<std::string, Position const*> known{{s.position.kind, position_.get()}};  // tables of positions are shared by layers
  for (Index i = 0; i < s.layers; ++i) {
    StackSettings const own = s.of_layer(i);
    bool const rotates = position_kind(own.position.kind).acts_on == PositionActsOn::queries_and_keys;  // by settings of its own
    if (rotates || !known.contains(own.position.kind)) {
      positions_of_layers_.push_back(make_position(own.position, scope, {s.context, s.width, s.heads}));
      known[own.position.kind] = positions_of_layers_.back().get();
    }
    blocks_.emplace_back(scope.at(fmt::format("blocks.{}", i)), own, i, *known.at(own.position.kind), residual_scale, cross, parts);
  }
  if (s.norm.placement == "pre") norm_.emplace(scope.at("norm"), s.width, s.norm.kind);
}

Tensor Blocks::embedded(Tensor const& x, Pass const& pass) const {
  Index const past = pass.decoding.cache != nullptr ? pass.decoding.cache->past : 0;
  return pass.dropout(position_->embed(x, past), settings_.dropout, path_.empty() ? "embedding" : path_ + ".embedding");
}

Tensor Blocks::operator()(Tensor x, Visibility const& sees, Pass const& pass, Memory const& memory, std::vector<Tensor>* layers) const {
  if (!memory.x.defined() && cross_) throw Error(fmt::format("{}: its blocks attend to a memory, but there is none", path_));
  std::size_t const first = choices_made(pass);
  std::size_t last = first;
  for (Block const& block : blocks_) {
    last = choices_made(pass);
    if (layers != nullptr) layers->push_back(x);
    auto const f = [&block, sees, seen = memory.visibility](auto const& in, Pass const& with) {
      return block(in[0], sees, {in.size() > 1 ? in[1] : Tensor(), seen}, with);
    };
    x = recomputed_block(f, memory.x.defined() ? std::vector{x, memory.x} : std::vector{x}, pass);
  }
  // In a causal model a choice affects no earlier position; in the last block only its own.
  if (causal_) set_reach(pass, first, HardChoices::Reach::later);
  set_reach(pass, last, HardChoices::Reach::position);
  return norm_ ? (*norm_)(x) : x;  // [B, T, d]
}

double Blocks::flops_per_token() const {
  double const context = to_double(settings_.context);
  auto const cross = settings_.shape_of(cross_ ? *cross_ : settings_.attention, 0);
  double const pairs = to_double(cross.heads * (cross.key_width + cross.value_width));
  double total = 0;
  for (Index i = 0; i < settings_.layers; ++i)
    total += settings_.of_layer(i).layer_flops(causal_ ? context / 2 : context) +
             (cross_ ? 4 * to_double(settings_.width) * pairs + 2 * context * pairs : 0);
  return total;
}

// --- The model ---------------------------------------------------------------------------------------------------------------------------

Gpt::Gpt(Parameters& parameters, StackSettings const& s, HeadSettings const& head, Signature const& data, SeesText sees)
    : settings_(s),
      causal_(sees == SeesText::past),
      tokens_(Scope(parameters).at("token_embedding"), data["inputs"].classes, s.width),
      segments_(data.has("segments")
                    ? std::optional(Embedding(Scope(parameters).at("segment_embedding"), data["segments"].classes, s.width))
                    : std::nullopt),
      // The output projections of the 2·layers residual branches start scaled by this factor, so that their sum has the usual size.
      blocks_(Scope(parameters), s, causal_, 1 / std::sqrt(2 * to_double(s.layers))),
      readout_(s.parametrization.growth(s.width)),
      continues_(causal_ && head.continues()) {
  if (head.predicts_tokens())
    word_weight_ = s.tie ? tokens_.weight : Embedding(Scope(parameters).at("head"), data["inputs"].classes, s.width).weight;
  head_ = head.make({Scope(parameters).at("heads"), s.width, s.layers + 1, !causal_, data, word_weight_});
  if (!s.parametrization.base) return;
  Parameters base = Parameters::counted(parameters.dtype());
  Gpt(base, s.of_base(), head, data, sees);
  parametrize(parameters, base);
}

Outcome Gpt::run(Batch const& batch, Pass const& pass) const {
  Tensor const tokens = sequences_of(batch["inputs"]), segments = batch.get("segments");  // [B, T]
  Streams streams{{}, lengths_of_sequences(batch)};
  Tensor const last = read(tokens, streams.lengths, segments.defined() ? sequences_of(segments) : segments, pass,
                           head_->reads_layers() ? &streams.layers : nullptr);  // [B, T, d]
  streams.layers.push_back(last);
  return {head_->predictions(streams, batch, pass)};  // by default logits [B, T, V] = x [B, T, d] · weightᵀ [d, V]
}

Tensor Gpt::read(Tensor const& tokens, Tensor const& lengths, Tensor const& segments, Pass const& pass, std::vector<Tensor>* layers) const {
  Visibility sees{.causal = causal_, .lengths = {}, .offset = pass.decoding.cache != nullptr ? pass.decoding.cache->past : 0};
  if (!causal_) sees.lengths = sees.query_lengths = lengths;  // causal: padding comes after all tokens that count, which do not see it
  Tensor x = tokens_(tokens);                                 // [B, T] → [B, T, d]
  if (segments_ && segments.defined()) x = x + (*segments_)(segments);
  x = blocks_(blocks_.embedded(x, pass), sees, pass, {}, layers);
  if (pass.decoding.cache != nullptr) pass.decoding.cache->past += tokens.size(1);
  return readout_ == 1 ? x : scale(x, readout_);  // [B, T, d]
}

// --- Decoding: texts that are continued together, each token of which is read once -------------------------------------------------------

class Gpt::IncrementalDecoding : public StepwiseDecoding {
 public:
  IncrementalDecoding(Gpt const& model, Pass const& pass) : StepwiseDecoding(pass), model_(model) {
    pass_.decoding.cache = &cache_;  // the keys and values of what was read
    restart();
  }

  void restart() override {
    cache_ = {};
    cache_.layers.resize(model_.blocks_.size());
  }

 private:
  Tensor read(Tensor const& tokens) override {  // [B, n] → [B, V]
    return linear(last_position(model_.read(tokens, {}, {}, pass_)), model_.word_weight_, {});
  }
  void keep_read(std::span<Index const> rows) override { cache_.keep(rows); }

  Gpt const& model_;
  KeyValueCache cache_;
};

std::unique_ptr<Decoding> Gpt::decode(Batch const& given, Pass const& pass) const {
  if (!continues_ || !given.parts().empty()) return nullptr;
  return std::make_unique<IncrementalDecoding>(*this, pass);
}

}  // namespace heed
