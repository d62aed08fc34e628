#pragma once

#include <cstdint>
#include <string>

#include "nn/attention/steps.hpp"
#include "nn/position.hpp"

namespace heed {

/// A call of attention, as far as its memory depends on it.
struct AttentionCost {
  AttentionSettings const& settings;
  HeadShape shape;
  std::int64_t value_width;  ///< d_v
  PositionChoice position;
  bool causal;
  double dropout;
  DType dtype;
};

/// What a pass through one attention layer holds, in bytes, beside queries, keys, values and their projections.
struct AttentionBytes {
  double kept;  ///< after the forward pass: by the graph, or by an observer
  double peak;  ///< at most, in the forward pass or for its gradient
};

/// Of a pass over B sequences of n queries and m keys: what runs is run, on few narrow heads and few short sequences, measured, and
/// extrapolated (bytes are linear in B, H and a head's width, and quadratic in the length). `recorded`, `trains`, `watched` as of
/// PassShape.
AttentionBytes attention_bytes(AttentionCost const& cost, std::int64_t batch, std::int64_t queries, std::int64_t keys, bool recorded,
                               bool trains, bool watched);

}  // namespace heed
