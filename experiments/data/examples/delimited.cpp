#include "autograd/error.hpp"
#include "experiments/data/examples/sequences.hpp"

namespace heed {

namespace {

/// Examples as GPT-1 reads them (Radford et al. 2018, section 3.3), with tokens [start], [delimiter] and [extract]:
///
///   a text           [start] text [extract]
///   a pair           [start] first [delimiter] second [extract]; without an order: this and the other order
///   an option of K   [start] text ([delimiter] second) [delimiter] option [extract]
///
/// The targets of the language model beside the task are the next tokens, the special ones included, as in the authors' program.
class Delimited : public SequenceView {
 public:
  explicit Delimited(std::unique_ptr<Dataset> plain)
      : SequenceView(std::move(plain), "delimited", {"[start]", "[delimiter]", "[extract]"}) {
    if (this->plain().signature().has("exact_match"))
      throw Error("data.exact_match: is encoded in segments, which this model does not read; bert does");
    declare();
  }

 private:
  Sequence put_together(ExamplePieces const& pieces) const override {
    Sequence made;
    made.add(mark(0));
    made.add(pieces.first, 0);
    if (!pieces.second.empty()) {
      made.add(mark(1));
      made.begin = std::ssize(made.tokens);
      made.add(pieces.second, 1);
      std::fill(made.passage.begin() + made.begin, made.passage.end(), 1);
    }
    if (!pieces.option.empty()) {
      made.add(mark(1));
      made.add(pieces.option, 1);
    }
    made.add(mark(2));
    made.passage.back() = 2;
    return made;
  }
  Index special(Index texts) const override { return texts + 1; }
  bool both_orders() const override { return true; }

  void complete(Batch& batch, std::vector<Sequence> const& sequences) const override {
    std::vector<Sequence> next = sequences;
    for (Sequence& sequence : next) {
      sequence.tokens.erase(sequence.tokens.begin());
      sequence.tokens.push_back(-1);
    }
    batch.set("targets", rows_of(next, &Sequence::tokens, -1, batch.rows()));
  }
};

Declared<ViewKind> const delimited_view{{"delimited", {"first"}, [](std::unique_ptr<Dataset> plain, std::uint64_t, Settings const*) {
                                           return std::make_unique<Delimited>(std::move(plain));
                                         }}};

}  // namespace

}  // namespace heed
