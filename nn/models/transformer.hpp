#pragma once

#include "nn/models/blocks.hpp"

namespace heed {

/// `cross_attention:` of an encoder–decoder: as `attention:`, which it is the same as unless a score is given.
struct CrossAttentionSettings : AttentionSettings {
  CrossAttentionSettings() { score = "same"; }
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  bool from_word(std::string_view word) override;
  std::vector<std::string> short_words() override;
};

/// `model: {kind: transformer, …}`.
struct TransformerSettings : StackSettings {
  TransformerSettings();
  CrossAttentionSettings cross_attention;

  /// What the decoder attends to the memory with.
  AttentionSettings const& cross() const { return cross_attention.score == "same" ? attention : cross_attention; }
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// The encoder–decoder of Vaswani et al. 2017. The encoder makes a memory of the source, each place of which sees all of it; the decoder
/// reads the target so far, attends to the memory, and predicts the next token. Embeddings are multiplied by √width; one table serves
/// source, target and head, unless the source has a vocabulary of its own or `tie` is false.
class Transformer : public Model {
 public:
  /// `source`: tokens of the source, if it has a vocabulary of its own.
  Transformer(Parameters& parameters, TransformerSettings const& settings, std::int64_t vocabulary,
              std::optional<std::int64_t> source = std::nullopt);

  Outcome run(Batch const& batch, Pass const& pass) const override;
  void check(Batch const& batch) const override;
  std::int64_t context() const override { return settings_.context; }
  std::int64_t vocabulary() const override { return target_tokens_.weight.size(0); }
  std::int64_t width() const override { return settings_.width; }
  std::optional<std::int64_t> limit() const override { return decoder_.limit(); }
  EstimatorSettings const* estimator() const override;
  double flops_per_token() const override;

  std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const override;

 private:
  class IncrementalDecoding;

  /// What the decoder attends to: of the batch's source, behind whose lengths nothing is seen.
  Memory encode(Batch const& batch, Pass const& pass) const;
  /// The target's tokens [B, T], of these lengths (undefined: all), as they leave the last block.
  Tensor read(Tensor const& tokens, Tensor const& lengths, Memory memory, Pass const& pass) const;

  TransformerSettings settings_;
  Embedding target_tokens_, source_tokens_;  // of one table, or of two
  Blocks encoder_, decoder_;
  Tensor head_;
};

}  // namespace heed
