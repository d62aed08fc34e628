// Shared by Transformers, and text models made of them; defined in gpt.cpp.

#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "nn/attention/attention.hpp"
#include "nn/attention/linear/linear_attention.hpp"
#include "nn/heads/head.hpp"
#include "nn/layers.hpp"
#include "nn/model.hpp"
#include "nn/models/layer_types.hpp"
#include "nn/parametrization.hpp"
#include "nn/position.hpp"

namespace heed {

/// Settings of all Transformers: `model: {kind: gpt, …}`, bert, transformer.
struct StackSettings : Settings {
  Index layers = 4;
  Index heads = 4;
  Index width = 128;
  Index context = 64;
  std::optional<Index> key_heads;  ///< number of groups of heads that share keys and values; default: heads
  PositionChoice position = "learned";
  AttentionSettings attention;
  std::string activation = "gelu";
  NormSettings norm;
  bool bias = true;
  bool tie = true;
  double dropout = 0;
  std::optional<Index> mlp_width;           ///< d_ff; default: 4 · width
  std::optional<Index> key_width;           ///< d_k; default: width / heads
  std::optional<Index> value_width;         ///< d_v; default: width / heads
  double query_key_spread = 1;              ///< factor on the initial standard deviation of the query and key projections
  Index sees = 0;                           ///< a token attends to the last `sees` ones, itself included; 0: to all
  LayerPattern pattern;                     ///< layers that differ
  ParametrizationSettings parametrization;  ///< of text models

  bool causal = true;  ///< not a key: whether a token attends only to itself and earlier ones

  /// Those of one layer, counted from 0, as if all were like it.
  StackSettings of_layer(Index layer) const;
  /// Those of the standard model at the parametrization's base width.
  StackSettings of_base() const;
  /// Those of attention to a memory; null: there is none.
  virtual AttentionSettings const* memory_attention() const { return nullptr; }
  /// The gradient estimator of its random choices; null: it makes none.
  EstimatorSettings const* estimator() const;
  /// Floating-point operations of one layer per token, where a token sees `seen` others, without cross-attention.
  double layer_flops(double seen) const;
  /// Numbers that decoding keeps for a token in one layer, or, of linear attention, for the sequence.
  Index cached_numbers() const;
  /// d_ff of the MLP.
  Index hidden() const { return mlp_width.value_or(4 * width); }
  /// For this attention in layer `layer`. A head with two maps has half the usual d_k.
  MultiHead::Dimensions shape_of(AttentionSettings const& attention, Index layer) const;
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;

 protected:
  std::optional<std::string> layer_contradiction() const;
  /// The error if the width cannot be divided among heads of this attention; nothing: it can.
  std::optional<std::string> head_width_error(AttentionSettings const& of) const;
};

/// Settings of a text model, which has a head.
struct TextStackSettings : StackSettings {
  Choice head;

  explicit TextStackSettings(SeesText text) : head(head_choice(text)) { causal = text == SeesText::past; }
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// The encoder outputs that a decoder's blocks attend to.
struct Memory {
  Tensor x = {};               ///< [B, S, d]; undefined: none
  Visibility visibility = {};  ///< of its positions, for the decoder's
};

/// One layer: attention, optional cross-attention to a memory, and an MLP, each with a residual connection.
class Block {
 public:
  /// `layer`: from 0. `residual_scale`: factor on the initial deviation of residual output projections. `cross`: null for none.
  /// `parts`: the block's own, as queries, and the memory's.
  Block(Scope const& scope, StackSettings const& settings, Index layer, Position const& position, double residual_scale,
        AttentionSettings const* cross, AttentionParts const& parts);
  /// The stream x [B, T, d] → [B, T, d].
  Tensor operator()(Tensor x, Visibility const& sees, Memory const& memory, Pass const& pass) const;

 private:
  struct Cross {
    Residual residual;
    MultiHead attention;
  };
  std::string path_;
  std::size_t layer_;
  Residual attention_residual_;
  std::variant<MultiHead, LinearAttention> attention_;
  std::optional<Cross> cross_;
  Residual mlp_residual_;
  Mlp mlp_;
};

/// Positions, blocks and, with pre-norm, a final norm.
class Blocks {
 public:
  /// `residual_scale`, `cross`: as in Block. `causal`: a token's choices affect later positions only; the operation count follows it.
  Blocks(Scope const& scope, StackSettings const& settings, bool causal, double residual_scale, AttentionSettings const* cross = nullptr,
         AttentionParts const& parts = {});

  /// Embeddings x [B, T, d] plus positions, with dropout.
  Tensor embedded(Tensor const& x, Pass const& pass) const;
  /// embedded() x [B, T, d] → the normalised output of the last block, [B, T, d]. `layers`, unless null, receives the input of the first
  /// block and the outputs of all blocks but the last.
  Tensor operator()(Tensor x, Visibility const& sees, Pass const& pass, Memory const& memory = {},
                    std::vector<Tensor>* layers = nullptr) const;

  std::size_t size() const { return blocks_.size(); }
  std::optional<Index> limit() const { return position_->limit(); }
  double flops_per_token() const;

 private:
  StackSettings settings_;
  std::optional<AttentionSettings> cross_;
  bool causal_;
  std::string path_;
  std::unique_ptr<Position> position_;
  std::vector<std::unique_ptr<Position>> positions_of_layers_;
  std::vector<Block> blocks_;
  std::optional<Norm> norm_;
};

/// `model: {kind: gpt, …}`.
struct GptSettings : TextStackSettings {
  GptSettings() : TextStackSettings(SeesText::past) {}
};

/// A decoder-only Transformer (Radford et al. 2018): token embeddings, blocks, and a head, by default over the vocabulary and tied to the
/// embeddings. Every token attends to itself and earlier ones and predicts the next; with SeesText::all (Bert) to all.
class Gpt : public Model {
 public:
  /// If the data have "segments" [B, T], the number of each token's text, these are embedded too (Devlin et al. 2019).
  Gpt(Parameters& parameters, TextStackSettings const& settings, Signature const& data, SeesText sees = SeesText::past)
      : Gpt(parameters, settings, head_settings(settings.head), data, sees) {}
  /// With a head that predicts tokens.
  Gpt(Parameters& parameters, StackSettings const& settings, Index vocabulary, SeesText sees = SeesText::past)
      : Gpt(parameters, settings, head_settings(head_choice(sees)), Signature::tokens(vocabulary), sees) {}

  std::vector<Term> terms() const override { return head_->terms(); }
  Outcome run(Batch const& batch, Pass const& pass) const override;
  Index context() const override { return settings_.context; }
  Index vocabulary() const override { return tokens_.weight.size(0); }
  Index width() const override { return settings_.width; }
  std::optional<Index> limit() const override { return blocks_.limit(); }
  /// Supported if the past never changes and the head predicts the next token.
  std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const override;
  EstimatorSettings const* estimator() const override { return settings_.estimator(); }
  double flops_per_token() const override {
    double const head = word_weight_.defined() ? 2.0 * static_cast<double>(settings_.width * vocabulary()) : 0;
    return blocks_.flops_per_token() + head;
  }

 private:
  class IncrementalDecoding;
  Gpt(Parameters& parameters, StackSettings const& settings, HeadSettings const& head, Signature const& data, SeesText sees);

  /// Tokens [B, T] with lengths and segments (undefined: all tokens count, no segments) → the output of the last block [B, T, d], the
  /// head's input; `layers` receives the inputs and outputs of the blocks before it, if wanted.
  Tensor read(Tensor const& tokens, Tensor const& lengths, Tensor const& segments, Pass const& pass,
              std::vector<Tensor>* layers = nullptr) const;

  StackSettings settings_;
  bool causal_;
  Embedding tokens_;
  std::optional<Embedding> segments_;
  Blocks blocks_;
  double readout_;      ///< factor on the head's input, and so on its logits
  Tensor word_weight_;  ///< of the head over the vocabulary, [V, d]; undefined if the head does not predict tokens
  bool continues_;
  std::unique_ptr<OutputHead> head_;
};

}  // namespace heed
