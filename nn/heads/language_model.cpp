#include "nn/heads/head.hpp"

namespace heed {

namespace {

/// Every position predicts a token: the next one, or, of models that see both ways, the one that was masked there.
class LanguageModel : public OutputHead {
 public:
  using OutputHead::OutputHead;

  std::vector<Term> terms() const override { return {Term()}; }
  std::vector<Prediction> predictions(Streams const& streams, Batch const&, Pass const&) const override {
    return {{Term(), words(streams.last())}};
  }
};

struct LanguageModelSettings : HeadSettings {
  std::vector<InputPart> reads(HeadViews const& views) const override {
    return {{"inputs"}, {.name = "targets", .view = views.targets, .view_settings = views.view_settings}};
  }
  bool continues() const override { return true; }
  std::unique_ptr<OutputHead> make(HeadParts const& parts) const override { return std::make_unique<LanguageModel>(parts); }
};

Declared<HeadKind> const language_model_head{
    {"language_model", "the next token, or the masked ones", [] { return std::make_shared<LanguageModelSettings>(); }}};

}  // namespace

}  // namespace heed
