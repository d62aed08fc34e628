#pragma once

#include <functional>
#include <span>

#include "nn/model.hpp"

namespace heed {

/// −Σ log p of the predicted tokens of a text, in nat.
struct TextLoss {
  double nats = 0;
  Index tokens = 0;  ///< all but the first
};

/// For a model that predicts the next token, in windows of its context that begin `stride` tokens apart. If the stride equals the context,
/// windows do not overlap; if it is smaller, each window after the first predicts only its last `stride` tokens, each with at least context
/// − stride tokens before it. `rows`: windows per batch. `seen` is called with the number of tokens predicted so far. Throws Error for
/// fewer than two tokens, an unknown token, and a stride outside 1 … context.
TextLoss text_loss(Model const& model, std::span<Index const> tokens, Index stride, Index rows,
                   std::function<void(Index)> const& seen = {});

}  // namespace heed
