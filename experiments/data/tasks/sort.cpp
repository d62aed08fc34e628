// A sequence, and its tokens in order:
//
//     inputs    c a b b · a b b          forced: false has blanks for the second a b b
//     targets   · · · · a b b c
//
// Forced, the next token is the smallest that has not been named often enough; at once, a token's rank has to be counted.

#include "experiments/data/tasks/sequence.hpp"

namespace heed {

namespace {

struct SortTask : SequenceTask {
  void transform(std::span<Index> sequence) const override { std::ranges::sort(sequence); }
};

Declared<DataKind> const sort_data{task_kind<SortTask>("sort", "sort the tokens of a sequence")};

}  // namespace

}  // namespace heed
