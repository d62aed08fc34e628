// The class of the item with the highest priority (Veličković et al. 2024, "Softmax is not enough", as tokens). Three classes, priorities
// up to 9:
//
//     inputs    b3 a7 c1 b9 a2 ?
//     targets   ·  ·  ·  ·  ·  b
//
// The highest priority occurs once; the more items, the sharper must attention be. Tokens: 1 … classes answer, then items, the question.

#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct MaxRetrieval : Task {
  Index classes = 10, levels = 64;

  std::vector<Field> keys() override {
    return {field(&classes, "classes", "number of classes").in(2, 1e4), field(&levels, "levels", "number of priorities").in(2, 1e4)};
  }
  TaskSizes sizes() const override { return {.tokens = 1 + classes + classes * levels + 1, .shortest_context = 2, .answers = classes}; }

  void write(TaskRow const& row, Stream const& draws) const override {
    auto const last = row.inputs.size() - 1;
    Index const highest = 1 + draw_number(draws.child("highest"), 0, levels - 1);
    auto const place = draws.child("place").below(0, last);
    for (std::size_t i = 0; i < last; ++i) {
      Index const item = draw_number(draws.child("class"), i, classes);
      Index const level = i == place ? highest : draw_number(draws.child("level"), i, highest);
      row.inputs[i] = 1 + classes + item * levels + level;
      if (i == place) row.targets[last] = 1 + item;
    }
    row.inputs[last] = sizes().tokens - 1;
  }
};

Declared<DataKind> const max_retrieval_data{task_kind<MaxRetrieval>("max_retrieval", "the class of the item with the highest priority")};

}  // namespace

}  // namespace heed
