#pragma once

#include "nn/masking.hpp"
#include "nn/models/transformer_stack.hpp"

namespace heed {

struct BertSettings : TextStackSettings {
  MaskingSettings masking;

  BertSettings() : TextStackSettings(SeesText::all) { causal = false; }
  std::vector<Field> fields() override;
};

/// A bidirectional encoder (Devlin et al. 2019): every token sees all of the row, and those that were masked are predicted. A head for
/// labelled examples reads its first token, [CLS].
class Bert : public TransformerStack {
 public:
  Bert(Parameters& parameters, TextStackSettings const& settings, Signature const& data) : TransformerStack(parameters, settings, data) {}
  Bert(Parameters& parameters, StackSettings const& settings, std::int64_t vocabulary)
      : TransformerStack(parameters, settings, vocabulary, SeesText::all) {}
};

}  // namespace heed
