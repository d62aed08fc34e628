#pragma once

#include "nn/models/blocks.hpp"

namespace heed {

/// `model: {kind: transformer, …}`.
struct TransformerSettings : StackSettings {
  TransformerSettings();
  OwnAttentionSettings cross_attention;

  /// The settings of the decoder's attention to the memory.
  AttentionSettings const& cross() const { return cross_attention.is_same() ? attention : cross_attention; }
  AttentionSettings const* memory_attention() const override { return &cross(); }
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// The encoder–decoder of Vaswani et al. 2017. The encoder turns the source into a memory, each position seeing all of it; the decoder
/// reads the target so far, attends to the memory, and predicts the next token. Embeddings are multiplied by √width; source, target and
/// head share one table, unless the source has its own vocabulary or `tie` is false.
class Transformer : public Model {
 public:
  /// `source`: size of the source's vocabulary, if it has its own.
  Transformer(Parameters& parameters, TransformerSettings const& settings, Index vocabulary, std::optional<Index> source = std::nullopt);
  Transformer(Parameters& parameters, TransformerSettings const& settings, Signature const& data)
      : Transformer(parameters, settings, data["inputs"].classes,
                    data["source"].vocabulary == data["inputs"].vocabulary ? std::nullopt : std::optional(data["source"].classes)) {}

  Outcome run(Batch const& batch, Pass const& pass) const override;
  void check(Batch const& batch) const override;
  Index context() const override { return settings_.context; }
  Index vocabulary() const override { return target_tokens_.weight.size(0); }
  Index width() const override { return settings_.width; }
  std::optional<Index> limit() const override { return decoder_.limit(); }
  EstimatorSettings const* estimator() const override;
  double flops_per_token() const override;

  std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const override;

 private:
  class IncrementalDecoding;

  /// The memory of the batch's source, visible up to its lengths.
  Memory encode(Batch const& batch, Pass const& pass) const;
  /// The target's tokens [B, T] with lengths (undefined: all) → the output of the last block.
  Tensor read(Tensor const& tokens, Tensor const& lengths, Memory memory, Pass const& pass) const;

  TransformerSettings settings_;
  Embedding target_tokens_, source_tokens_;  // share one table, or have one each
  Blocks encoder_, decoder_;
  Tensor head_;
};

}  // namespace heed
