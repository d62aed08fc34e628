#pragma once

#include "nn/heads/features.hpp"

namespace heed {

/// Keys of heads for labelled examples.
struct TaskHeadSettings : HeadSettings {
  FeatureSettings features;
  double auxiliary = 0;  ///< λ, the weight of the language-model loss on the examples; 0: no such loss

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override { return features.contradiction(); }
  bool predicts_tokens() const override { return auxiliary > 0; }

 protected:
  /// The parts for labelled examples, with targets if it predicts tokens, and their labels.
  std::vector<InputPart> examples(HeadViews const& views, std::vector<InputPart> const& labels) const;
};

/// A head for labelled examples: a term of the task, and optionally the language model's, L3 = L2 + λ L1 (Radford et al. 2018, eq. 5).
class TaskHead : public OutputHead {
 public:
  /// `kind`: its name in the parameters, heads.KIND. Throws Error for an auxiliary language-model loss if positions see the tokens to be
  /// predicted.
  TaskHead(HeadParts const& parts, TaskHeadSettings const& settings, std::string const& kind, Term task);

  std::vector<Term> terms() const final;
  bool reads_layers() const final { return features_.reads_layers(); }
  std::vector<Prediction> predictions(Streams const& streams, Batch const& batch, Pass const& pass) const final;

 protected:
  Features const& features() const { return features_; }
  /// Logits for the task's targets.
  virtual LinearHead logits(Streams const& streams, Batch const& batch, Pass const& pass) const = 0;

 private:
  Term task_;
  Features features_;
  double auxiliary_;  ///< λ
  Tensor word_weight_, word_bias_;
};

}  // namespace heed
