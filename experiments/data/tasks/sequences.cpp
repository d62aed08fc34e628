#include "experiments/data/tasks/families.hpp"

namespace heed {

namespace {

/// A sequence, and the same again:
///
///     inputs    c a b b · c a b          forced: false has blanks for the second c a b
///     targets   · · · · c a b b
///
/// Requires attention `length` positions back, by position or (forced) by the preceding token. Graves et al. 2014; with `test_length`
/// larger than `length` (and a context for it) it tests whether a model has learned the rule or the positions.
Declared<DataKind> const copy_data{task_kind<SequenceTask>("copy", "copy a sequence")};

/// A sequence, and the same backwards:
///
///     inputs    c a b b · b b a          forced: false has blanks for the second b b a
///     targets   · · · · b b a c
///
/// The position to attend to moves against the query's position: without positions the order cannot be determined.
struct ReverseTask : SequenceTask {
  void transform(std::span<Index> sequence) const override { std::ranges::reverse(sequence); }
};

Declared<DataKind> const reverse_data{task_kind<ReverseTask>("reverse", "reverse a sequence")};

/// A sequence, and its tokens in order:
///
///     inputs    c a b b · a b b          forced: false has blanks for the second a b b
///     targets   · · · · a b b c
///
/// Forced, the next token is the smallest that has not been named often enough; at once, a token's rank has to be counted.
struct SortTask : SequenceTask {
  void transform(std::span<Index> sequence) const override { std::ranges::sort(sequence); }
};

Declared<DataKind> const sort_data{task_kind<SortTask>("sort", "sort the tokens of a sequence")};

/// A sequence, a question, and the sequence again (Poli et al. 2024, MAD, "compression"):
///
///     inputs    c a b b ? · · ·
///     targets   · · · · c a b b
///
/// With `model.head: bottleneck` every target is predicted from the state at the question alone, as by MAD's decoder: one vector has to
/// hold the sequence. With other heads it is copying. The lowest loss is 0. Token 0 is a blank, the last one the question.
struct Compression : SequenceTask {
  Compression() { forced = false; }

  std::vector<Field> keys() override {
    auto all = SequenceTask::keys();
    all.pop_back();  // forced
    return all;
  }
  TaskSizes sizes() const override {
    auto all = SequenceTask::sizes();
    ++all.tokens;  // the question
    return all;
  }
  void write(TaskRow const& row, Stream const& draws) const override {
    SequenceTask::write(row, draws);
    *std::ranges::find(row.inputs, blank) = sizes().tokens - 1;
  }
};

Declared<DataKind> const compression_data{
    task_kind<Compression>("compression", "a sequence, to be named again from the state at its end (model.head: bottleneck)")};

}  // namespace

}  // namespace heed
