// A sequence, and the same again:
//
//     inputs    c a b b · c a b          forced: false has blanks for the second c a b
//     targets   · · · · c a b b
//
// Requires attention `length` positions back, by position or (forced) by the preceding token. Graves et al. 2014; with `test_length` larger
// than `length` (and a context for it) it tests whether a model has learned the rule or the positions.

#include "experiments/data/tasks/sequence.hpp"

namespace heed {

namespace {

Declared<DataKind> const copy_data{task_kind<SequenceTask>("copy", "copy a sequence")};

}  // namespace

}  // namespace heed
