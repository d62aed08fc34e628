#pragma once

#include "nn/models/blocks.hpp"

namespace heed {

/// Token embeddings, blocks and a head over the vocabulary: pre-norm with a tied head unless told otherwise. What a token may see makes the
/// difference between its two kinds: those before it (Gpt), or all (Bert).
class TransformerStack : public Model {
 public:
  enum class Sees { past, all };
  TransformerStack(Parameters& parameters, StackSettings const& settings, std::int64_t vocabulary, Sees sees);

  Outcome run(Batch const& batch, Pass const& pass) const override;
  std::int64_t context() const override { return settings_.context; }
  std::int64_t vocabulary() const override { return tokens_.weight.size(0); }
  std::int64_t width() const override { return settings_.width; }
  std::optional<std::int64_t> limit() const override { return blocks_.limit(); }
  /// It continues a text where the past never changes.
  std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const override;
  EstimatorSettings const* estimator() const override { return settings_.attention.estimator_if_hard(); }
  double peak_bytes(PassShape const& shape) const override;
  double flops_per_token() const override;

 private:
  class Step;

  /// Of tokens [B, T] of these lengths (undefined: all), the stream [B, T, width] that the head reads.
  Tensor read(Tensor const& tokens, Tensor const& lengths, Pass const& pass) const;

  StackSettings settings_;
  Sees sees_;
  Embedding tokens_;
  Blocks blocks_;
  Tensor head_;
};

}  // namespace heed
