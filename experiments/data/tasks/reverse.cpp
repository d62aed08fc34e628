// A sequence, and the same backwards:
//
//     inputs    c a b b · b b a          forced: false has blanks for the second b b a
//     targets   · · · · b b a c
//
// The position to attend to moves against the query's position: without positions the order cannot be determined.

#include "experiments/data/tasks/sequence.hpp"

namespace heed {

namespace {

struct ReverseTask : SequenceTask {
  void transform(std::span<Index> sequence) const override { std::ranges::reverse(sequence); }
};

Declared<DataKind> const reverse_data{task_kind<ReverseTask>("reverse", "reverse a sequence")};

}  // namespace

}  // namespace heed
