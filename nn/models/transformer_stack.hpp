#pragma once

#include <memory>
#include <vector>

#include "nn/attention/attention.hpp"
#include "nn/layers.hpp"
#include "nn/model.hpp"
#include "nn/position.hpp"

namespace heed {

/// `model: {kind: gpt, …}` and `model: {kind: bert, …}`.
struct StackSettings : Settings {
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t width = 128;
  std::int64_t context = 64;
  std::string position = "learned";
  AttentionSettings attention;
  std::string activation = "gelu";
  NormSettings norm;
  bool bias = true;
  bool tie = true;
  double dropout = 0;
  std::optional<std::int64_t> key_width;    ///< d_k; width / heads unless given
  std::optional<std::int64_t> value_width;  ///< d_v; width / heads unless given

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// One layer: attention and a two-layer perceptron, each around a residual branch.
class Block {
 public:
  Block(Scope const& scope, StackSettings const& settings, Position const& position);
  /// x [B, T, width] → [B, T, width].
  Tensor operator()(Tensor x, Visibility const& visibility, Pass const& pass, std::size_t layer) const;

 private:
  std::string path_;
  bool pre_;
  double dropout_;
  Norm norm1_;
  MultiHead attention_;
  Norm norm2_;
  Mlp mlp_;
};

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
  std::optional<std::int64_t> limit() const override { return position_->limit(); }
  /// Text is generated step by step where the past never changes.
  std::size_t cache_layers() const override { return sees_ == Sees::past ? blocks_.size() : 0; }
  EstimatorSettings const* estimator() const override { return settings_.attention.estimator_if_hard(); }
  double peak_bytes(PassShape const& shape) const override;
  double flops_per_token() const override;

 private:
  StackSettings settings_;
  Sees sees_;
  Embedding tokens_;
  std::unique_ptr<Position> position_;
  std::vector<Block> blocks_;
  std::optional<Norm> norm_;
  Tensor head_;
};

}  // namespace heed
