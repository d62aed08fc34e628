#pragma once

#include "nn/models/transformer_stack.hpp"

namespace heed {

struct BertSettings : StackSettings {
  BertSettings() { causal = false; }
};

/// A bidirectional encoder (Devlin et al. 2019): every token sees all of the row, and those that were masked are predicted.
class Bert : public TransformerStack {
 public:
  Bert(Parameters& parameters, StackSettings const& settings, std::int64_t vocabulary)
      : TransformerStack(parameters, settings, vocabulary, Sees::all) {}
};

}  // namespace heed
