// What Transformers have in common, and models of text that are made of it; defined in gpt.cpp, where a GPT is written out.

#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "nn/attention/attention.hpp"
#include "nn/heads/head.hpp"
#include "nn/layers.hpp"
#include "nn/model.hpp"
#include "nn/position.hpp"

namespace heed {

/// What all Transformers have: `model: {kind: gpt, …}`, bert, transformer.
struct StackSettings : Settings {
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t width = 128;
  std::int64_t context = 64;
  std::optional<std::int64_t> key_heads;  ///< groups of heads that share keys and values; as many as heads unless given
  PositionChoice position = "learned";
  AttentionSettings attention;
  std::string activation = "gelu";
  NormSettings norm;
  bool bias = true;
  bool tie = true;
  double dropout = 0;
  std::optional<std::int64_t> mlp_width;    ///< d_ff; 4 · width unless given
  std::optional<std::int64_t> key_width;    ///< d_k; width / heads unless given
  std::optional<std::int64_t> value_width;  ///< d_v; width / heads unless given
  double query_key_spread = 1;              ///< factor on the initial spread of the weights of queries and keys

  bool causal = true;  ///< no key: whether every token attends to itself and the past alone

  /// d_ff of the perceptron.
  std::int64_t hidden() const { return mlp_width.value_or(4 * width); }
  /// Of this attention in layer number `layer`. A head that has two maps has half the usual d_k.
  MultiHead::Dimensions shape_of(AttentionSettings const& attention, std::int64_t layer) const;
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;

 protected:
  /// Why heads of this attention have no whole width; nothing: they have.
  std::optional<std::string> indivisible(AttentionSettings const& of) const;
};

/// Of a model of text, which has a head.
struct TextStackSettings : StackSettings {
  Choice head;

  explicit TextStackSettings(SeesText sees) : head(head_choice(sees)) { causal = sees == SeesText::past; }
  std::vector<Field> fields() override;
};

/// The parts of a batch of which a stream's places are, and those of the memory that its blocks attend to, if they do.
struct StreamParts {
  std::string own = "inputs", memory = {};
};

/// What the blocks of a decoder attend to beside their own stream.
struct Memory {
  Tensor x = {};               ///< [B, S, d]; undefined: nothing
  Visibility visibility = {};  ///< of its places, to the decoder's
};

/// One layer: attention, perhaps attention to a memory, and a perceptron of two layers, each added to the residual stream.
class Block {
 public:
  /// `layer`: counted from 0. `share`: factor on the initial spread of what is added to the stream. `cross`: of the attention to a memory;
  /// null: there is none.
  Block(Scope const& scope, StackSettings const& settings, std::int64_t layer, Position const& position, double share,
        AttentionSettings const* cross, StreamParts const& parts);
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
  MultiHead attention_;
  std::optional<Cross> cross_;
  Residual mlp_residual_;
  Mlp mlp_;
};

/// Positions, blocks and, if these are pre-norm, a last norm.
class Blocks {
 public:
  /// `share`, `cross`: as Block's. `causal`: whether a token's choices reach later places alone, and operations are counted so.
  Blocks(Scope const& scope, StackSettings const& settings, bool causal, double share, AttentionSettings const* cross = nullptr,
         StreamParts const& parts = {});

  /// Embeddings x [B, T, d], with what their positions add, and dropout.
  Tensor embedded(Tensor const& x, Pass const& pass) const;
  /// embedded() x [B, T, d] → the stream that leaves the last block, normed, [B, T, d]. `layers`, unless null, gets what enters the first
  /// block and leaves every one but the last.
  Tensor operator()(Tensor x, Visibility const& sees, Pass const& pass, Memory const& memory = {},
                    std::vector<Tensor>* layers = nullptr) const;

  std::size_t size() const { return blocks_.size(); }
  std::optional<std::int64_t> limit() const { return position_->limit(); }
  double flops_per_token() const;

 private:
  StackSettings settings_;
  std::optional<AttentionSettings> cross_;
  bool causal_;
  std::string path_;
  std::unique_ptr<Position> position_;
  std::vector<Block> blocks_;
  std::optional<Norm> norm_;
};

/// `model: {kind: gpt, …}`.
struct GptSettings : TextStackSettings {
  GptSettings() : TextStackSettings(SeesText::past) {}
};

/// A decoder-only Transformer (Radford et al. 2018): token embeddings, blocks, and a head, by default over the vocabulary and tied to the
/// embeddings. Every token attends to itself and those before it, and predicts the next; or (SeesText::all, of Bert) to all.
class Gpt : public Model {
 public:
  /// For data that give "segments" [B, T], the number of the text that a token is of, there is an embedding of these too (Devlin et al.
  /// 2019).
  Gpt(Parameters& parameters, TextStackSettings const& settings, Signature const& data, SeesText sees = SeesText::past)
      : Gpt(parameters, settings, head_settings(settings.head), data, sees) {}
  /// Whose head predicts tokens.
  Gpt(Parameters& parameters, StackSettings const& settings, std::int64_t vocabulary, SeesText sees = SeesText::past)
      : Gpt(parameters, settings, head_settings(head_choice(sees)), Signature::tokens(vocabulary), sees) {}

  std::vector<Term> terms() const override { return head_->terms(); }
  Outcome run(Batch const& batch, Pass const& pass) const override;
  std::int64_t context() const override { return settings_.context; }
  std::int64_t vocabulary() const override { return tokens_.weight.size(0); }
  std::int64_t width() const override { return settings_.width; }
  std::optional<std::int64_t> limit() const override { return blocks_.limit(); }
  /// It continues a text where the past never changes, and its head predicts what comes next.
  std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const override;
  EstimatorSettings const* estimator() const override { return settings_.attention.estimator_if_hard(); }
  double flops_per_token() const override {
    double const head = word_weight_.defined() ? 2.0 * static_cast<double>(settings_.width * vocabulary()) : 0;
    return blocks_.flops_per_token() + head;
  }

 private:
  class IncrementalDecoding;
  Gpt(Parameters& parameters, StackSettings const& settings, HeadSettings const& head, Signature const& data, SeesText sees);

  /// Tokens [B, T] of these lengths and segments (undefined: all tokens count, there are no segments) → the stream [B, T, d] that leaves
  /// the last block; before it come, where `layers` wants them, those that enter and leave the blocks.
  Tensor read(Tensor const& tokens, Tensor const& lengths, Tensor const& segments, Pass const& pass,
              std::vector<Tensor>* layers = nullptr) const;

  StackSettings settings_;
  bool causal_;
  Embedding tokens_;
  std::optional<Embedding> segments_;
  Blocks blocks_;
  Tensor word_weight_;  ///< of the head over the vocabulary, [V, d]; undefined where the head predicts no tokens
  bool continues_;
  std::unique_ptr<OutputHead> head_;
};

}  // namespace heed
