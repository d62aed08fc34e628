#include "experiments/data/examples/dataset.hpp"
#include "experiments/data/examples/sequences.hpp"

namespace heed {

namespace {

/// Options as continuations of a text, without special tokens, as a language model that was never trained on the task reads them (Radford
/// et al. 2018, section 5): text, second and option one after the other, joined as in pre-training (a blank, or `join`). Targets are the
/// next tokens of the option alone.
class ContinuedText : public SequenceView {
 public:
  explicit ContinuedText(std::unique_ptr<Dataset> plain) : SequenceView(std::move(plain), "continued", {}) { declare(); }

 private:
  Sequence put_together(ExamplePieces const& pieces) const override {
    Sequence made;
    made.add(pieces.first, 0);
    made.add(pieces.second, 0);
    made.add(pieces.option, 1);
    return made;
  }
  Index special(Index) const override { return 0; }
  bool cuts_beginnings() const override { return true; }  // what an option goes on with stands right before it

  void complete(Batch& batch, std::vector<Sequence> const& sequences) const override {
    std::vector<Sequence> next = sequences;
    for (Sequence& sequence : next) {
      for (std::size_t i = 0; i + 1 < sequence.tokens.size(); ++i)
        sequence.tokens[i] = sequence.segments[i + 1] == 1 ? sequence.tokens[i + 1] : -1;
      sequence.tokens.back() = -1;
    }
    batch.set("targets", rows_of(next, &Sequence::tokens, -1, batch.rows()));
  }
};

Declared<ViewKind> const continued_view{
    {"continued", {"first", "options"}, [](std::unique_ptr<Dataset> plain, std::uint64_t, Settings const*) {
       if (auto* const examples = dynamic_cast<ExamplesDataset*>(plain.get())) examples->join_texts();
       return std::make_unique<ContinuedText>(std::move(plain));
     }}};

}  // namespace

}  // namespace heed
