// The token that stood `lag` steps ago. A lag of 3:
//
//     inputs    c a b b d a c
//     targets   · · · c a b b
//
// A dependency at a fixed distance: attention needs one step, a recurrent state has to store `lag` tokens (Hochreiter & Schmidhuber 1997).

#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct Lag : Task {
  Index lag = 8;
  Index vocabulary = 16;

  std::vector<Field> keys() override {
    return {field(&lag, "lag", "distance in steps; model.context > lag: a sequence is as long as the context").in(0, 1e6),
            field(&vocabulary, "vocabulary", "number of different tokens").in(2, 1e6)};
  }

  TaskSizes sizes() const override { return {.tokens = 1 + vocabulary, .shortest_context = lag + 1, .answers = vocabulary}; }

  void write(TaskRow const& row, Stream const& draws) const override {
    auto const back = static_cast<std::size_t>(lag);
    for (std::size_t i = 0; i < row.inputs.size(); ++i) {
      row.inputs[i] = 1 + draw_number(draws, i, vocabulary);
      if (i >= back) row.targets[i] = row.inputs[i - back];
    }
  }
};

Declared<DataKind> const lag_data{task_kind<Lag>("lag", "predict the token a fixed number of steps before")};

}  // namespace

}  // namespace heed
