// A sequence, a question, and the sequence again (Poli et al. 2024, MAD, "compression"):
//
//     inputs    c a b b ? · · ·
//     targets   · · · · c a b b
//
// With `model.head: bottleneck` every target is predicted from the state at the question alone, as by MAD's decoder: one vector has to hold
// the sequence. With other heads it is copying. The lowest loss is 0. Token 0 is a blank, the last one the question.

#include "experiments/data/tasks/sequence.hpp"

namespace heed {

namespace {

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
