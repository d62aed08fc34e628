#include "autograd/error.hpp"
#include "autograd/operations/reduce.hpp"
#include "nn/heads/task_settings.hpp"

namespace heed {

namespace {

/// The class of an example: softmax(W h + b) of its summary h (Radford et al. 2018, eq. 3; Devlin et al. 2019, section 4.1). Of a pair that
/// is shown in both orders, inputs [B, 2, T], h is the sum of both summaries.
class Classification : public OutputHead {
 public:
  Classification(HeadParts const& parts, TaskHeadSettings const& settings)
      : features_(parts, settings.features, "classification"),
        linear_(parts.scope.at("classification"), features_.width(), parts.data["label"].classes, true),
        auxiliary_(parts, settings) {
    if (has_options(parts.data)) throw Error("model.head: the data are a multiple choice, whose options have no classes; head: choice");
  }

  std::vector<Term> terms() const override {
    std::vector<Term> all{{"label", "label"}};
    auxiliary_.add_to(all);
    return all;
  }
  bool reads_layers() const override { return features_.reads_layers(); }
  std::vector<Prediction> predictions(Streams const& streams, Batch const& batch, Pass const& pass) const override {
    Tensor const summary = features_.summary(streams, pass);
    std::int64_t const rows = batch.rows();
    Tensor const of_row = summary.size(0) == rows ? summary : sum(reshape(summary, {rows, -1, summary.size(1)}), {1});
    std::vector<Prediction> all{{{"label", "label"}, {of_row, linear_.weight, linear_.bias}}};
    auxiliary_.add_to(all, streams, batch);
    return all;
  }
  double elements(std::int64_t sequences, std::int64_t tokens) const override { return features_.elements(sequences, tokens); }

 private:
  Features features_;
  Linear linear_;
  Auxiliary auxiliary_;
};

struct ClassificationSettings : TaskHeadSettings {
  std::vector<Need> reads(HeadViews const& views) const override {
    auto needs = examples(views);
    needs.push_back({"label"});
    return needs;
  }
  std::unique_ptr<OutputHead> make(HeadParts const& parts) const override { return std::make_unique<Classification>(parts, *this); }
};

DeclaredHead const declared{{"classification", "the class of a text or of a pair of texts (Radford et al. 2018; Devlin et al. 2019)",
                             [] { return std::make_shared<ClassificationSettings>(); }}};

}  // namespace

}  // namespace heed
