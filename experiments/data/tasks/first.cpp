// Does a string of bits begin with a 1? (Chiang & Cholak 2022, "FIRST": the weight of one position must not drown in those of the others.)
//
//     inputs    1 0 0 1 ?
//     targets   · · · · 1
//
// A string is as long as the context, less the question. Tokens: 1 and 2 are the bits, 3 the question.

#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct First : Task {
  std::vector<Field> keys() override { return {}; }
  TaskSizes sizes() const override { return {.tokens = 4, .shortest_context = 2, .answers = 2}; }

  void write(TaskRow const& row, Stream const& draws) const override {
    auto const last = row.inputs.size() - 1;
    for (std::size_t i = 0; i < last; ++i) row.inputs[i] = 1 + draw_number(draws, i, 2);
    row.inputs[last] = 3;
    row.targets[last] = row.inputs[0];
  }
};

Declared<DataKind> const first_data{task_kind<First>("first", "the first of a string of bits")};

}  // namespace

}  // namespace heed
