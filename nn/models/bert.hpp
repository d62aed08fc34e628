#pragma once

#include "nn/models/transformer_stack.hpp"

namespace heed {

/// `masking: {share, mask, random}`: of masked language modelling (Devlin et al. 2019, section 3.1).
struct MaskingSettings : Settings {
  double share = 0.15;  ///< of the tokens that are chosen
  double mask = 0.8;    ///< of these, the share that [MASK] replaces
  double random = 0.1;  ///< and the share that a random token does; the rest are kept
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

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
