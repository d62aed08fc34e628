#include "nn/heads/head.hpp"
#include "nn/layers.hpp"

namespace heed {

namespace {

/// Every position predicts a token: the next one, or, of models that see both ways, the one that was masked there.
class LanguageModel : public OutputHead {
 public:
  LanguageModel(HeadParts const& parts, HeadSettings const&) : OutputHead(parts) {}

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
};

Declared<HeadKind> const language_model_head{
    head_of<LanguageModel, LanguageModelSettings>("language_model", "the next token, or the masked ones")};

/// The masked tokens and, by the summary token C, whether the second text follows the first: softmax(W C) (Devlin et al. 2019,
/// section 3.1).
class NextSentence : public OutputHead {
 public:
  NextSentence(HeadParts const& parts, HeadSettings const&)
      : OutputHead(parts), follows_(parts.scope.at("next_sentence"), parts.width, 2, true), first_(parts.summary_is_first) {}

  std::vector<Term> terms() const override { return {Term(), {"next_sentence", "next_sentence"}}; }
  std::vector<Prediction> predictions(Streams const& streams, Batch const&, Pass const&) const override {
    return {{terms()[0], words(streams.last())},
            {terms()[1], {at_summary(streams.last(), streams.lengths, first_), follows_.weight, follows_.bias}}};
  }

 private:
  Linear follows_;
  bool first_;
};

struct NextSentenceSettings : HeadSettings {
  std::vector<InputPart> reads(HeadViews const& views) const override {
    return {{"next_sentence", "sentence_pairs"},
            {"inputs"},
            {"segments"},
            {.name = "targets", .view = views.targets, .view_settings = views.view_settings}};
  }
};

Declared<HeadKind> const next_sentence_head{head_of<NextSentence, NextSentenceSettings>(
    "next_sentence", "masked tokens, and whether the second of two texts follows the first (Devlin et al. 2019)", SeesText::all)};

}  // namespace

}  // namespace heed
