// A sequence, and its words in order:
//
//     source    c a b b
//     target    a b b c
//
// Where to attend depends on the content of all positions. A repeated word comes from either position.

#include <algorithm>

#include "experiments/data/pairs/pair_task.hpp"

namespace heed {

namespace {

struct SortPairs : RandomPairs {
  void answer(PairRow& row) const override {
    auto const& source = row.source;
    auto ordered = source;
    std::ranges::sort(ordered);
    for (auto const word : ordered) {
      bool const once = std::ranges::count(source, word) == 1;
      if (once) {
        row.say(word, static_cast<std::size_t>(std::ranges::find(source, word) - source.begin()));
        continue;
      }
      row.say(word);
      for (std::size_t i = 0; i < source.size(); ++i)
        if (source[i] == word) row.link_last_to(i, i + 1);
    }
  }
};

Declared<PairKind> const sort_pair{{"sort", "sort the words of a sequence", [] { return std::make_shared<SortPairs>(); }}};

}  // namespace

}  // namespace heed
