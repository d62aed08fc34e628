// A sequence, and the same with each word w repeated w mod most + 1 times (once, twice or three times for most = 3):
//
//     source    a b c a
//     target    a b b c c c a
//
// Attention stays on a word for a number of steps that depends on the word: source and target differ in length, not by a constant factor.

#include "experiments/data/pairs/pair_task.hpp"

namespace heed {

namespace {

struct StretchPairs : RandomPairs {
  Index times = 3;

  std::vector<Field> fields() override {
    return extended(RandomPairs::fields(), {field(&times, "most", "largest number of repetitions of a word").in(1, 1e3)});
  }

  Index max_growth() const override { return times; }

  void answer(PairRow& row) const override {
    for (std::size_t i = 0; i < row.source.size(); ++i)
      for (Index again = 0; again <= row.source[i] % times; ++again) row.say(row.source[i], i);
  }
};

Declared<PairKind> const stretch_pair{
    {"stretch", "repeat each word as often as its number requires", [] { return std::make_shared<StretchPairs>(); }}};

}  // namespace

}  // namespace heed
