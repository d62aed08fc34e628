#pragma once

#include "nn/heads/head.hpp"
#include "nn/models/recurrent/recurrent.hpp"
#include "nn/models/recurrent/recurrent_settings.hpp"

namespace heed {

/// `model: {kind: recurrent_lm, …}`.
struct RecurrentLmSettings : RecurrentSettings {
  std::optional<Index> embedding;  ///< default: width
  bool tie = false;
  Choice head = head_choice(SeesText::past);

  RecurrentLmSettings() { width = 128; }
  Index embedded() const { return embedding.value_or(width); }
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// A recurrent language model (Mikolov et al. 2010; Zaremba et al. 2014): cells read a text, and their output predicts the next token. Each
/// sequence of a batch starts from zeros. A head for labelled examples reads the state at a text's last token.
class RecurrentLm : public Model {
 public:
  RecurrentLm(Parameters& parameters, RecurrentLmSettings const& settings, Signature const& data);

  std::vector<Term> terms() const override { return head_->terms(); }
  Outcome run(Batch const& batch, Pass const& pass) const override;
  Index context() const override { return settings_.context; }
  Index vocabulary() const override { return tokens_.weight.size(0); }
  Index width() const override { return settings_.width; }
  double flops_per_token() const override;
  std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const override;

 private:
  class IncrementalDecoding;

  RecurrentLmSettings settings_;
  Embedding tokens_;
  Recurrent cells_;
  Tensor word_weight_, bias_;  ///< of the head over the vocabulary; undefined if the head does not predict tokens
  bool continues_;
  std::unique_ptr<OutputHead> head_;
};

}  // namespace heed
