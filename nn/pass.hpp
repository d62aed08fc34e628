#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autograd/operations.hpp"
#include "autograd/random.hpp"
#include "nn/choices.hpp"

namespace heed {

/// Keys and values of the tokens already read, one entry a layer, so that a decoder reads each token once.
struct KeyValueCache {
  struct Layer {
    Tensor key, value;  ///< [B, past, H·d]; undefined before the first token
  };
  std::vector<Layer> layers;
  std::int64_t past = 0;  ///< tokens read: the position of the next one
};

/// Is told the weights [B, H, n, m] of each attention layer ("blocks.0.attention") on the way through a model.
using AttentionObserver = std::function<void(std::string const& layer, Tensor const& weights)>;

/// What a forward pass carries through a model beside its input.
struct Pass {
  std::optional<Stream> noise;     ///< while training: where dropout draws from; a stream of its own for every step and micro-batch
  KeyValueCache* cache = nullptr;  ///< while decoding step by step
  AttentionObserver const* observer = nullptr;  ///< asks for weights that are not kept otherwise
  Stream choosing{0, "choices"};                ///< while evaluating: where hard attention draws from, if it samples
  Choices* choices = nullptr;                   ///< told what hard attention chooses
  std::int64_t step = 0;                        ///< updates made before
  bool recompute = false;                       ///< keep only what enters each block, and run it again for its gradient (Chen et al. 2016)

  /// Dropout while training, keyed by the place that asks ("blocks.0.attention.weights"); x itself otherwise.
  Tensor dropout(Tensor const& x, double rate, std::string const& place) const {
    return noise && rate > 0 ? heed::dropout(x, rate, noise->child(place)) : x;
  }
};

}  // namespace heed
