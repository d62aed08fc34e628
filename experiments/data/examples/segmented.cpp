#include <set>

#include "experiments/data/examples/sequences.hpp"

namespace heed {

namespace {

/// Examples as BERT reads them (Devlin et al. 2019, section 3), with tokens [CLS] and [SEP] and the number of the text that a token is of:
///
///   a text           [CLS] text [SEP]
///   a pair           [CLS] first [SEP] second [SEP], segments 0 … 0 1 … 1
///   an option of K   [CLS] text [SEP] (second) option [SEP]
///
/// With `exact_match`, segment 2 has the tokens of `second` that occur in the first text too: the feature f_exact_match of Chen et al.
/// 2017 (DrQA, section 3.2), added to the embedding as Devlin et al. add segments.
class Segmented : public SequenceView {
 public:
  explicit Segmented(std::unique_ptr<Dataset> plain)
      : SequenceView(std::move(plain), "segmented", {"[CLS]", "[SEP]"}), exact_match_(this->plain().signature().has("exact_match")) {
    declare();
  }

 private:
  Sequence put_together(ExamplePieces const& pieces) const override {
    Sequence made;
    made.add(mark(0));
    made.passage.back() = 2;
    made.add(pieces.first, 0);
    made.add(mark(1));
    if (pieces.second.empty() && pieces.option.empty()) return made;
    made.begin = std::ssize(made.tokens);
    std::set<Index> const in_first(pieces.first.begin(), pieces.first.end());
    for (Index const token : pieces.second) made.add(token, exact_match_ && in_first.contains(token) ? 2 : 1);
    std::fill(made.passage.begin() + made.begin, made.passage.end(), 1);
    made.add(pieces.option, 1);
    made.add(mark(1), 1);
    return made;
  }
  Index special(Index texts) const override { return texts > 1 ? 3 : 2; }

  void complete(Batch& batch, std::vector<Sequence> const& sequences) const override {
    batch.set("segments", rows_of(sequences, &Sequence::segments, 0, batch.rows()));
  }
  void complete(Signature& given) const override {
    PartSpec segments = given["inputs"];
    segments.name = "segments";
    segments.classes = exact_match_ ? 3 : 2;
    segments.vocabulary = "texts";
    segments.added = {};
    given.set(std::move(segments));
  }

  bool exact_match_;
};

Declared<ViewKind> const segmented_view{{"segmented", {"first"}, [](std::unique_ptr<Dataset> plain, std::uint64_t, Settings const*) {
                                           return std::make_unique<Segmented>(std::move(plain));
                                         }}};

}  // namespace

}  // namespace heed
