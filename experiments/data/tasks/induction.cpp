// … A B … A → B: random tokens, and at each that has been there before the one that followed it the last time:
//
//     inputs    c a b d a c a
//     targets   · · · · b a c
//
// What an induction head does (Olsson et al. 2022), with a head before it that tells each token its predecessor. A larger vocabulary puts
// the earlier occurrence further back: on average as many tokens as there are different ones.

#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct Induction : Task {
  Index vocabulary = 16;
  std::optional<Index> length;

  std::vector<Field> keys() override {
    return {field(&vocabulary, "vocabulary", "number of different tokens").in(2, 1e6),
            field(&length, "length", "tokens of a sequence (default: the context)").in(3, 1e6)};
  }

  TaskSizes sizes() const override { return {.tokens = 1 + vocabulary, .shortest_context = length.value_or(3), .answers = vocabulary}; }

  void write(TaskRow const& row, Stream const& draws) const override {
    auto const size = length ? static_cast<std::size_t>(*length) : row.inputs.size();
    std::vector<std::size_t> followed(static_cast<std::size_t>(sizes().tokens), 0);  // the position after each token's last; 0: not seen
    for (std::size_t i = 0; i < size; ++i) {
      row.inputs[i] = 1 + draw_number(draws, i, vocabulary);
      auto& next = at(followed, row.inputs[i]);
      if (next > 0) row.targets[i] = row.inputs[next];
      next = i + 1;
    }
  }
};

Declared<DataKind> const induction_data{
    task_kind<Induction>("induction", "random tokens: predict the token after the previous occurrence of the current one")};

}  // namespace

}  // namespace heed
