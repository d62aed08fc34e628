#pragma once

#include "nn/models/transformer_stack.hpp"

namespace heed {

struct GptSettings : TextStackSettings {
  GptSettings() : TextStackSettings(SeesText::past) {}
};

/// A decoder-only Transformer (Radford et al. 2018): every token sees itself and those before it, and predicts the next. A head for
/// labelled examples reads its last token, which sees all.
class Gpt : public TransformerStack {
 public:
  Gpt(Parameters& parameters, TextStackSettings const& settings, Signature const& data) : TransformerStack(parameters, settings, data) {}
  Gpt(Parameters& parameters, StackSettings const& settings, std::int64_t vocabulary)
      : TransformerStack(parameters, settings, vocabulary, SeesText::past) {}
};

}  // namespace heed
