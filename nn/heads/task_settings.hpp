#pragma once

#include "nn/heads/features.hpp"

namespace heed {

/// The keys of a head for labelled examples that have no others.
struct TaskHeadSettings : HeadSettings {
  FeatureSettings features;
  double auxiliary = 0;  ///< λ, the weight of the language model's loss on the examples; 0: no such loss

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override { return features.contradiction(); }
  bool predicts_tokens() const override { return auxiliary > 0; }

 protected:
  /// The sequences of examples as the model is shown them, and their targets if it predicts tokens.
  std::vector<Need> examples(HeadViews const& views) const;
};

/// The language model beside a task: L3 = L2 + λ L1 (Radford et al. 2018, eq. 5). Nothing where λ is 0.
class Auxiliary {
 public:
  /// Throws Error for a model that sees the token that it would predict.
  Auxiliary(HeadParts const& parts, TaskHeadSettings const& settings);

  void add_to(std::vector<Term>& terms) const;
  void add_to(std::vector<Prediction>& predictions, Streams const& streams, Batch const& batch) const;

 private:
  double weight_;
  Tensor word_weight_, word_bias_;
};

}  // namespace heed
