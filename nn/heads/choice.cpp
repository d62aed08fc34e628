#include "nn/heads/task_settings.hpp"

namespace heed {

namespace {

/// Which of K options is right: softmax over k of v·h_k, h_k the summary of the sequence with option k, inputs [B, K, T] (Radford et al.
/// 2018, section 3.3; Devlin et al. 2019, section 4.4).
class MultipleChoice : public OutputHead {
 public:
  MultipleChoice(HeadParts const& parts, TaskHeadSettings const& settings)
      : features_(parts, settings.features, "choice"),
        vector_(parts.scope.at("choice"), features_.width(), 1, false),
        auxiliary_(parts, settings) {
    check_options(parts.data);
  }

  std::vector<Term> terms() const override {
    std::vector<Term> all{{"label", "label"}};
    auxiliary_.add_to(all);
    return all;
  }
  bool reads_layers() const override { return features_.reads_layers(); }
  std::vector<Prediction> predictions(Streams const& streams, Batch const& batch, Pass const& pass) const override {
    Tensor const scores = vector_(features_.summary(streams, pass), pass);  // [B·K, 1]
    std::vector<Prediction> all{{{"label", "label"}, {reshape(scores, {batch.rows(), -1})}}};
    auxiliary_.add_to(all, streams, batch);
    return all;
  }
  double elements(std::int64_t sequences, std::int64_t tokens) const override { return features_.elements(sequences, tokens); }

 private:
  Features features_;
  Linear vector_;
  Auxiliary auxiliary_;
};

struct ChoiceSettings : TaskHeadSettings {
  std::vector<Need> reads(HeadViews const& views) const override {
    auto needs = examples(views);
    needs.push_back({"label"});
    return needs;
  }
  std::unique_ptr<OutputHead> make(HeadParts const& parts) const override { return std::make_unique<MultipleChoice>(parts, *this); }
};

DeclaredHead const declared{{"choice", "which of several options is right (Radford et al. 2018; Devlin et al. 2019)",
                             [] { return std::make_shared<ChoiceSettings>(); }}};

}  // namespace

}  // namespace heed
