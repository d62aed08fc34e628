#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "nn/attention/attention.hpp"
#include "nn/layers.hpp"
#include "nn/model.hpp"
#include "nn/position.hpp"

namespace heed {

/// `model: {kind: gpt, …}`, `model: {kind: bert, …}`, and what an encoder–decoder shares with them.
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

  bool causal = true;  ///< no key: whether all of its attention looks back alone

  /// Of the perceptron.
  std::int64_t hidden() const { return mlp_width.value_or(4 * width); }
  /// d_k of a head of this attention: half of the usual where it has two maps.
  std::int64_t head_width(AttentionSettings const& of) const {
    return key_width.value_or(of.differential ? width / heads / 2 : width / heads);
  }
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;

 protected:
  /// Why heads of this attention have no whole width; nothing: they have.
  std::optional<std::string> indivisible(AttentionSettings const& of) const;
};

/// The parts of a batch of which a stream's places are, and those of the memory that its blocks look at, if they do.
struct StreamParts {
  std::string own = "inputs", memory = {};
};

/// What the blocks of a decoder look at beside their own stream.
struct Memory {
  Tensor x;               ///< [B, S, width]
  Visibility visibility;  ///< of the memory's places, to the decoder's
};

/// One layer: attention, perhaps attention to a memory, and a two-layer perceptron, each around a residual branch.
class Block {
 public:
  /// `share`: the factor on the initial spread of what a residual branch adds. `cross`: of the attention to a memory; null: there is none.
  /// `layer`: counted from 0.
  Block(Scope const& scope, StackSettings const& settings, Position const& position, double share, AttentionSettings const* cross,
        StreamParts const& parts, std::int64_t layer);
  /// x [B, T, width] → [B, T, width]. `memory`: null for a block without attention to one.
  Tensor operator()(Tensor x, Visibility const& visibility, Memory const* memory, Pass const& pass, std::size_t layer) const;

 private:
  struct Cross {
    Norm norm;
    MultiHead attention;
  };
  /// Keys and values of the memory; with a cache, made once.
  Projected projected(Memory const& memory, Pass const& pass, std::size_t layer) const;

  std::string path_;
  bool pre_;
  double dropout_;
  Norm norm1_;
  MultiHead attention_;
  std::optional<Cross> cross_;
  Norm mlp_norm_;
  Mlp mlp_;
};

/// Positions, blocks and, if these are pre-norm, a last norm.
class Blocks {
 public:
  /// `share` and `cross`: as Block's. `causal`: what flops_per_token() reckons with.
  Blocks(Scope const& scope, StackSettings const& settings, bool causal, double share, AttentionSettings const* cross = nullptr,
         StreamParts const& parts = {});

  /// x [B, T, width] of tokens, with what their positions add, and dropout.
  Tensor embedded(Tensor const& x, Pass const& pass) const;
  /// embedded() tokens [B, T, width] → what leaves the last block, normed. `layers`, unless null, gets what enters the first block and
  /// leaves every one but the last.
  Tensor operator()(Tensor x, Visibility const& visibility, Pass const& pass, Memory const* memory = nullptr,
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

}  // namespace heed
