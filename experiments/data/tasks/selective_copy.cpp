// Copy what is no noise, in order (Gu & Dao 2023, "Mamba"; Poli et al. 2024, MAD). Two tokens among noise:
//
//     inputs    · b · · a · ? ·
//     targets   · · · · · · b a
//
// The tokens stand at random positions of the first part; the question follows, then blanks. Token 0 is the noise.

#include <algorithm>

#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct SelectiveCopy : Task {
  Index length = 8, vocabulary = 16;

  std::vector<Field> keys() override {
    return {field(&length, "length", "tokens that are to be copied; model.context ≥ 2·length").in(1, 1e5),
            field(&vocabulary, "vocabulary", "number of different tokens").in(2, 1e6)};
  }
  TaskSizes sizes() const override { return {.tokens = 1 + vocabulary + 1, .shortest_context = 2 * length, .answers = vocabulary}; }

  void write(TaskRow const& row, Stream const& draws) const override {
    Index const first = static_cast<Index>(row.inputs.size()) - length;  // of the answer, where the question stands
    auto places = different_numbers(draws.child("places"), length, first);
    std::ranges::sort(places);
    for (std::size_t i = 0; i < places.size(); ++i) {
      Index const token = 1 + draw_number(draws.child("tokens"), i, vocabulary);
      row.inputs[static_cast<std::size_t>(places[i])] = token;
      row.targets[static_cast<std::size_t>(first) + i] = token;
    }
    row.inputs[static_cast<std::size_t>(first)] = 1 + vocabulary;
  }
};

Declared<DataKind> const selective_copy_data{task_kind<SelectiveCopy>("selective_copy", "the tokens among noise, in their order")};

}  // namespace

}  // namespace heed
