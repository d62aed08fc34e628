#include "nn/models/transformer.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/product.hpp"
#include "nn/decode.hpp"

namespace heed {

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

namespace {

/// With pre-norm, a factor by which the sum of a side's residual branches has the usual size; with post-norm each sum is normalised anyway.
double residual_scale(StackSettings const& s, Index branches) {
  return s.norm.placement == "post" ? 1 : 1 / std::sqrt(static_cast<double>(branches * s.layers));
}

bool one_vocabulary(Signature const& data) { return data["source"].vocabulary == data["inputs"].vocabulary; }

/// The encoder–decoder of Vaswani et al. 2017. The encoder turns the source into a memory, each position seeing all of it; the decoder
/// reads the target so far, attends to the memory, and predicts the next token. Embeddings are multiplied by √width; source, target and
/// head share one table, unless the source has its own vocabulary or `tie` is false.
class Transformer : public Model {
 public:
  Transformer(Parameters& parameters, TransformerSettings const& s, Signature const& data)
      : settings_(s),
        target_tokens_(Scope(parameters).at(one_vocabulary(data) ? "token_embedding" : "decoder.token_embedding"), data["inputs"].classes,
                       s.width),
        source_tokens_(one_vocabulary(data) ? target_tokens_
                                            : Embedding(Scope(parameters).at("encoder.token_embedding"), data["source"].classes, s.width)),
        encoder_(Scope(parameters).at("encoder"), s, false, residual_scale(s, 2), nullptr, {"source"}),
        decoder_(Scope(parameters).at("decoder"), s, true, residual_scale(s, 3), &s.cross(), {"inputs", "source"}),
        head_(s.tie ? target_tokens_.weight : Embedding(Scope(parameters).at("head"), vocabulary(), s.width).weight) {}

  Outcome run(Batch const& batch, Pass const& pass) const override {
    Memory const memory = encode(batch, pass);
    return {{{Term(), {read(batch["inputs"], batch.get("lengths"), memory, pass), head_}}}};
  }
  void check(Batch const& batch) const override {
    for (auto const& [name, rows] : {std::pair("source", batch["source"]), std::pair("target", batch["inputs"])})
      if (rows.size(1) > settings_.context)
        throw Error(fmt::format("model.context: a {} has {} tokens, but it is made for {}", name, rows.size(1), settings_.context));
  }
  Index context() const override { return settings_.context; }
  Index vocabulary() const override { return target_tokens_.weight.size(0); }
  Index width() const override { return settings_.width; }
  std::optional<Index> limit() const override { return decoder_.limit(); }
  EstimatorSettings const* estimator() const override {
    auto const* const of_self = settings_.estimator();
    return of_self != nullptr ? of_self : settings_.cross().estimator_if_hard();
  }
  double flops_per_token() const override {
    double const head = 2 * static_cast<double>(settings_.width) * static_cast<double>(vocabulary());
    return encoder_.flops_per_token() + decoder_.flops_per_token() + head;
  }
  std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const override {
    return decoding_of(*this, given, pass, "source");
  }

 private:
  friend class SourceDecoding<Transformer>;

  struct EncodedMemory : Memory {
    void keep(std::span<Index const> rows) {
      x = take(x, rows);
      if (visibility.lengths.defined()) visibility.lengths = take(visibility.lengths, rows);
    }
  };
  /// The memory of the batch's source, visible up to its lengths.
  EncodedMemory encode(Batch const& batch, Pass const& pass) const {
    Tensor const lengths = batch.get("source_lengths");
    Tensor const embedded = scale(source_tokens_(batch["source"]), std::sqrt(static_cast<double>(settings_.width)));
    Visibility const sees{.causal = false, .lengths = lengths, .offset = 0, .query_lengths = lengths};
    Tensor const x = encoder_(encoder_.embedded(embedded, pass), sees, pass);
    // Any position of the target may attend to any position of the source.
    set_reach(pass, 0, HardChoices::Reach::sequence);
    return {{x, {.causal = false, .lengths = lengths, .offset = 0}}};
  }
  KeyValueCache begin(EncodedMemory const&) const {
    KeyValueCache cache;
    cache.layers.resize(decoder_.size());
    return cache;
  }
  Tensor next_scores(Tensor const& tokens, EncodedMemory const& memory, KeyValueCache&, Pass const& pass) const {
    return linear(last_position(read(tokens, {}, memory, pass)), head_, {});
  }
  /// The target's tokens [B, T] with lengths (undefined: all) → the output of the last block.
  Tensor read(Tensor const& tokens, Tensor const& lengths, Memory memory, Pass const& pass) const {
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

  TransformerSettings settings_;
  Embedding target_tokens_, source_tokens_;  // share one table, or have one each
  Blocks encoder_, decoder_;
  Tensor head_;
};

Declared<ModelKind> const transformer_model{model_of<Transformer, TransformerSettings>(
    "transformer", "encoder–decoder Transformer (Vaswani et al. 2017)", {{"source"}, {"inputs"}, {"targets"}})};

}  // namespace

}  // namespace heed
