#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "nn/model.hpp"

namespace heed {

/// −Σ log p of the tokens of a text that were predicted, in nat.
struct TextLoss {
  double nats = 0;
  std::int64_t tokens = 0;  ///< all but the first
};

/// Of a model that predicts the next token, in windows of its context that begin `stride` tokens apart. With a stride of the context
/// windows do not overlap; with a smaller one each predicts, from the second on, only the last `stride` of its tokens, so that all but the
/// first window's have context − stride tokens or more before them. `rows`: windows at once. `seen` is called with how many tokens have
/// been predicted. Throws Error for fewer than two tokens, for one that the model does not know, and for a stride that is not from 1 to the
/// context.
TextLoss text_loss(Model const& model, std::span<std::int64_t const> tokens, std::int64_t stride, std::int64_t rows,
                   std::function<void(std::int64_t)> const& seen = {});

}  // namespace heed
