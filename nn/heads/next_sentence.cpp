#include "nn/heads/head.hpp"
#include "nn/layers.hpp"

namespace heed {

namespace {

/// The masked tokens and, of the summary token C, whether the second text follows the first: softmax(W C) (Devlin et al. 2019,
/// section 3.1).
class NextSentence : public OutputHead {
 public:
  explicit NextSentence(HeadParts const& parts)
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
  std::unique_ptr<OutputHead> make(HeadParts const& parts) const override { return std::make_unique<NextSentence>(parts); }
};

Declared<HeadKind> const next_sentence_head{{"next_sentence",
                                             "masked tokens, and whether the second of two texts follows the first (Devlin et al. 2019)",
                                             [] { return std::make_shared<NextSentenceSettings>(); }, SeesText::all}};

}  // namespace

}  // namespace heed
