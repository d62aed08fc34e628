#pragma once

#include "nn/models/transformer_stack.hpp"

namespace heed {

using GptSettings = StackSettings;

/// A decoder-only Transformer (Radford et al. 2018): every token sees itself and those before it, and predicts the next.
class Gpt : public TransformerStack {
 public:
  Gpt(Parameters& parameters, GptSettings const& settings, std::int64_t vocabulary)
      : TransformerStack(parameters, settings, vocabulary, Sees::past) {}
};

}  // namespace heed
