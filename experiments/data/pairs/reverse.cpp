// A sequence, and the same backwards:
//
//     source    c a b b
//     target    b b a c
//
// The first word comes from the last one, whose position a left-to-right alignment cannot know.

#include "experiments/data/pairs/pair_task.hpp"

namespace heed {

namespace {

struct ReversePairs : RandomPairs {
  void answer(PairRow& row) const override {
    for (auto i = row.source.size(); i-- > 0;) row.say(row.source[i], i);
  }
};

Declared<PairKind> const reverse_pair{{"reverse", "reverse a sequence", [] { return std::make_shared<ReversePairs>(); }}};

}  // namespace

}  // namespace heed
