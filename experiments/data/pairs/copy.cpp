// A sequence, and the same again:
//
//     source    c a b b
//     target    c a b b
//
// Word i comes from word i: the look moves on by one place a step.

#include "experiments/data/pairs/pair_task.hpp"

namespace heed {

namespace {

struct Copy : RandomPairs {
  void answer(PairRow& row) const override {
    for (std::size_t i = 0; i < row.source.size(); ++i) row.say(row.source[i], i);
  }
};

bool const registered = register_pairs<Copy>("copy", "a sequence, and the same again");

}  // namespace

}  // namespace heed
