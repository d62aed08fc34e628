// A sequence, and the same again:
//
//     source    c a b b
//     target    c a b b
//
// Word i comes from word i: attention moves one position per step. With `first` all sequences begin with the same word, as those of the
// Annotated Transformer do (Rush 2018), whose decoder is given that word: its loss covers the others alone.

#include <algorithm>

#include <fmt/format.h>

#include "experiments/data/pairs/pair_task.hpp"

namespace heed {

namespace {

struct CopyPairs : RandomPairs {
  std::optional<Index> first;

  std::vector<Field> fields() override {
    return extended(
        RandomPairs::fields(),
        {field(&first, "first", "first word of all sequences; on held-out data it and the end are not scored (default: any word)")
             .in(1, 1e6)});
  }

  std::optional<std::string> contradiction() override {
    if (first && *first > vocabulary) return fmt::format("first: {} is not a word from 1 to {}", *first, vocabulary);
    if (first && std::min(shortest.value_or(length), test_length.value_or(length)) < 2)
      return "first: a sequence of one word would have nothing to copy";
    return RandomPairs::contradiction();
  }

  void answer(PairRow& row) const override {
    if (first) row.source.front() = static_cast<std::int32_t>(*first - 1);
    row.certain = first.has_value();
    for (std::size_t i = 0; i < row.source.size(); ++i) row.say(row.source[i], i);
  }
};

Declared<PairKind> const copy_pair{{"copy", "copy a sequence", [] { return std::make_shared<CopyPairs>(); }}};

}  // namespace

}  // namespace heed
