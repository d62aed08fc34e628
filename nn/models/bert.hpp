#pragma once

#include "nn/masking.hpp"
#include "nn/models/blocks.hpp"

namespace heed {

struct BertSettings : TextStackSettings {
  MaskingSettings masking;
  BertSettings() : TextStackSettings(SeesText::all) {}
  std::vector<Field> fields() override {
    return extended(TextStackSettings::fields(), {field(&masking, "masking", "which tokens are predicted, and what replaces them")});
  }
};

/// A bidirectional encoder (Devlin et al. 2019): every token attends to its whole sequence, and masked tokens are predicted. A head for
/// labelled examples reads the first token, [CLS].
struct Bert : Gpt {
  Bert(Parameters& parameters, auto const& settings, auto const& data) : Gpt(parameters, settings, data, SeesText::all) {}
};

}  // namespace heed
