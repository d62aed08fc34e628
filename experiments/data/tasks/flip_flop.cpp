// A read says the bit that was written last (Liu et al. 2023, "Exposing attention glitches with flip-flop language modeling").
//
//     inputs    w 1 i 0 i 1 r 1 w 0 r 0
//     targets   · · · · · · 1 · · · 0 ·
//
// The first instruction writes, the last reads, others are ignored with the probability `ignore` and write or read with half of the rest
// each. Held-out sequences may have another: .98 is the paper's sparse test, .1 its dense one. Tokens: 1 w, 2 r, 3 i, 4 and 5 the bits.

#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct FlipFlop : Task {
  double ignore = 0.8;
  std::optional<double> test_ignore;

  std::vector<Field> keys() override {
    return {field(&ignore, "ignore", "share of instructions that are ignored").in(0, 1),
            field(&test_ignore, "test_ignore", "the same of held-out sequences (default: as in training); .98 sparse, .1 dense").in(0, 1)};
  }
  TaskSizes sizes() const override { return {.tokens = 6, .shortest_context = 4, .answers = 2}; }

  void write(TaskRow const& row, Stream const& draws) const override {
    double const ignored = row.held_out ? test_ignore.value_or(ignore) : ignore;
    auto const count = row.inputs.size() / 2;
    Index written = 0;
    for (std::size_t i = 0; i < count; ++i) {
      double const draw = draws.child("instruction").uniform(i);
      Index const instruction = i == 0 ? 1 : i + 1 == count ? 2 : draw < ignored ? 3 : draw < (1 + ignored) / 2 ? 1 : 2;
      Index const bit = instruction == 2 ? written : 4 + draw_number(draws.child("bit"), i, 2);
      if (instruction == 1) written = bit;
      row.inputs[2 * i] = instruction;
      row.inputs[2 * i + 1] = bit;
      if (instruction == 2) row.targets[2 * i] = bit;
    }
  }
};

Declared<DataKind> const flip_flop_data{task_kind<FlipFlop>("flip_flop", "the bit that was written last, among ignored ones")};

}  // namespace

}  // namespace heed
