#include "nn/models/transformer.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/product.hpp"
#include "nn/decode.hpp"

namespace heed {

namespace {

Declared<ModelKind> const transformer_model{model_of<Transformer, TransformerSettings>(
    "transformer", "encoder–decoder Transformer (Vaswani et al. 2017)", {{"source"}, {"inputs"}, {"targets"}})};

/// With pre-norm, a factor by which the sum of a side's residual branches has the usual size; with post-norm each sum is normalised anyway.
double residual_scale(StackSettings const& s, Index branches) {
  return s.norm.placement == "post" ? 1 : 1 / std::sqrt(static_cast<double>(branches * s.layers));
}

Embedding source_table(Parameters& parameters, Index width, std::optional<Index> vocabulary, Embedding const& target) {
  return vocabulary ? Embedding(Scope(parameters).at("encoder.token_embedding"), *vocabulary, width) : target;
}

}  // namespace

TransformerSettings::TransformerSettings() {
  causal = false;  // the encoder's is not
  position = "sinusoidal";
  activation = "relu";
  norm.placement = "post";
}

std::vector<Field> TransformerSettings::fields() {
  auto fields = StackSettings::fields();
  std::ranges::find(fields, "layers", &Field::name)->help = "blocks of the encoder, and as many of the decoder";
  std::ranges::find(fields, "context", &Field::name)->help = "longest source and target in tokens";
  std::ranges::find(fields, "tie", &Field::name)->help = "share weights of the output layer and the target's token embedding";
  auto const attention_field = std::ranges::find(fields, "attention", &Field::name);
  fields.insert(
      attention_field + 1,
      field(&cross_attention, "cross_attention",
            "attention of the decoder to the source: a variant's name, or a section with score, align and read; same: as attention"));
  return fields;
}

std::optional<std::string> TransformerSettings::contradiction() {
  auto const* const of_self = estimator();
  bool const two_estimators = of_self != nullptr && cross().read == "hard" && !(*of_self == cross().estimator);
  if (cross().is_linear() || cross().convolution)
    return "cross_attention: attention to a source is neither linear nor convolved; give it a score, as in cross_attention: scaled";
  if (cross().forget) return "cross_attention.forget: needs causal attention";
  if (two_estimators) return "cross_attention: its estimator differs from attention's; a model has one estimator";
  if (auto const why = StackSettings::contradiction()) return why;
  return head_width_error(cross());
}

Transformer::Transformer(Parameters& parameters, TransformerSettings const& s, Index vocabulary, std::optional<Index> source)
    : settings_(s),
      target_tokens_(Scope(parameters).at(source ? "decoder.token_embedding" : "token_embedding"), vocabulary, s.width),
      source_tokens_(source_table(parameters, s.width, source, target_tokens_)),
      encoder_(Scope(parameters).at("encoder"), s, false, residual_scale(s, 2), nullptr, {"source"}),
      decoder_(Scope(parameters).at("decoder"), s, true, residual_scale(s, 3), &s.cross(), {"inputs", "source"}),
      head_(s.tie ? target_tokens_.weight : Embedding(Scope(parameters).at("head"), vocabulary, s.width).weight) {}

void Transformer::check(Batch const& batch) const {
  for (auto const& [name, rows] : {std::pair("source", batch["source"]), std::pair("target", batch["inputs"])})
    if (rows.size(1) > settings_.context)
      throw Error(fmt::format("model.context: a {} has {} tokens, but it is made for {}", name, rows.size(1), settings_.context));
}

Memory Transformer::encode(Batch const& batch, Pass const& pass) const {
  Tensor const lengths = batch.get("source_lengths");
  Tensor const embedded = scale(source_tokens_(batch["source"]), std::sqrt(static_cast<double>(settings_.width)));
  Visibility const sees{.causal = false, .lengths = lengths, .offset = 0, .query_lengths = lengths};
  Tensor const x = encoder_(encoder_.embedded(embedded, pass), sees, pass);
  // Any position of the target may attend to any position of the source.
  set_reach(pass, 0, HardChoices::Reach::sequence);
  return {x, {.causal = false, .lengths = lengths, .offset = 0}};
}

Outcome Transformer::run(Batch const& batch, Pass const& pass) const {
  Memory const memory = encode(batch, pass);
  return {{{Term(), {read(batch["inputs"], batch.get("lengths"), memory, pass), head_}}}};
}

Tensor Transformer::read(Tensor const& tokens, Tensor const& lengths, Memory memory, Pass const& pass) const {
  Index const past = pass.decoding.cache != nullptr ? pass.decoding.cache->past : 0;
  Tensor const embedded = scale(target_tokens_(tokens), std::sqrt(static_cast<double>(settings_.width)));
  // Positions that count do not see the padding; padding sees nothing, so that it makes no choices.
  Visibility const sees{.causal = true, .lengths = {}, .offset = past, .query_lengths = lengths};
  memory.visibility.query_lengths = lengths;
  memory.visibility.offset = past;
  Tensor const x = decoder_(decoder_.embedded(embedded, pass), sees, pass, memory);
  if (pass.decoding.cache != nullptr) pass.decoding.cache->past += tokens.size(1);
  return x;
}

/// Rows that are decoded together: the source is encoded once, each layer's keys and values are kept.
class Transformer::IncrementalDecoding : public StepwiseDecoding {
 public:
  IncrementalDecoding(Transformer const& model, Batch const& given, Pass const& pass) : StepwiseDecoding(pass), model_(model) {
    memory_ = model.encode(given, pass_);
    begin(memory_.x.size(0));
    restart();
    pass_.decoding.cache = &cache_;
  }

  void restart() override {
    cache_ = {};
    cache_.layers.resize(model_.decoder_.size());
  }

 private:
  Tensor read(Tensor const& tokens) override { return linear(last_position(model_.read(tokens, {}, memory_, pass_)), model_.head_, {}); }
  void keep_read(std::span<Index const> rows) override { cache_.keep(rows); }
  void keep_given(std::span<Index const> rows) override {
    cache_.keep_memory(rows);
    memory_.x = take(memory_.x, rows);
    if (memory_.visibility.lengths.defined()) memory_.visibility.lengths = take(memory_.visibility.lengths, rows);
  }

  Transformer const& model_;
  Memory memory_;
  KeyValueCache cache_;
};

std::unique_ptr<Decoding> Transformer::decode(Batch const& given, Pass const& pass) const {
  NoGrad const quiet;
  if (!given.has("source")) return nullptr;
  return std::make_unique<IncrementalDecoding>(*this, given, pass);
}

EstimatorSettings const* Transformer::estimator() const {
  auto const* const of_self = settings_.estimator();
  return of_self != nullptr ? of_self : settings_.cross().estimator_if_hard();
}

double Transformer::flops_per_token() const {
  double const head = 2 * static_cast<double>(settings_.width) * static_cast<double>(vocabulary());
  return encoder_.flops_per_token() + decoder_.flops_per_token() + head;
}

}  // namespace heed
