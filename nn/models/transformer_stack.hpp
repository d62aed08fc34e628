#pragma once

#include "nn/models/blocks.hpp"

namespace heed {

/// Token embeddings, blocks and a head over the vocabulary: pre-norm with a tied head unless told otherwise. What a token may see makes the
/// difference between its two kinds: those before it (Gpt), or all (Bert).
class TransformerStack : public Model {
 public:
  enum class Sees { past, all };
  TransformerStack(Parameters& parameters, StackSettings const& settings, std::int64_t vocabulary, Sees sees);

  Tensor logits(Batch const& batch, Pass const& pass) const override;
  std::optional<LinearHead> linear_head(Batch const& batch, Pass const& pass) const override;
  std::int64_t context() const override { return settings_.context; }
  std::int64_t vocabulary() const override { return tokens_.weight.size(0); }
  std::int64_t width() const override { return settings_.width; }
  std::optional<std::int64_t> limit() const override { return blocks_.limit(); }
  /// Text is generated step by step where the past never changes.
  std::size_t cache_layers() const override { return sees_ == Sees::past ? blocks_.size() : 0; }
  EstimatorSettings const* estimator() const override { return settings_.attention.estimator_if_hard(); }
  double peak_bytes(PassShape const& shape) const override;
  double flops_per_token() const override;

 private:
  StackSettings settings_;
  Sees sees_;
  Embedding tokens_;
  Blocks blocks_;
  Tensor head_;
};

}  // namespace heed
