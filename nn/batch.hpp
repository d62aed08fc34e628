#pragma once

#include "autograd/tensor.hpp"

namespace heed {

/// What one step of training or evaluation sees. Targets of −1 do not count.
struct Batch {
  Tensor inputs;          ///< int64 [B, T]
  Tensor targets;         ///< int64 [B, T]
  Tensor source;          ///< int64 [B, S], encoder–decoders only
  Tensor source_lengths;  ///< int64 [B], encoder–decoders only
  Tensor lengths{};       ///< int64 [B]: the tokens of each row; what stands behind them is padding; undefined: all T
  Tensor groups{};  ///< int64 [B, T], of validation data: the group that a target's accuracy is told for; −1: none; undefined: no groups
};

}  // namespace heed
