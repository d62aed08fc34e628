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

}  // namespace heed
