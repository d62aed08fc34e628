// A fixed dictionary (Poli et al. 2024, MAD): every key has one value, the same in all sequences and for every seed, which no sequence
// shows. It is asked for at the blank after a key:
//
//     inputs    b · d · b · a ·
//     targets   · 1 · 0 · 1 · 3
//
// Tokens: 0 the blank, 1 … keys, then the values. Only weights can know the answers.

#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct Memorization : Task {
  Index length = 16, key_count = 256, values = 16;

  std::vector<Field> keys() override {
    return {field(&length, "length", "keys of a sequence; model.context ≥ 2·length").in(1, 1e6),
            field(&key_count, "keys", "number of different keys").in(1, 1e6),
            field(&values, "values", "number of different values").in(2, 1e6)};
  }
  TaskSizes sizes() const override { return {.tokens = 1 + key_count + values, .shortest_context = 2 * length, .answers = values}; }

  void write(TaskRow const& row, Stream const& draws) const override {
    Stream const dictionary(0, "memorization");
    for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) {
      Index const key = draw_number(draws, i, key_count);
      row.inputs[2 * i] = 1 + key;
      row.targets[2 * i + 1] = 1 + key_count + draw_number(dictionary, static_cast<std::size_t>(key), values);
    }
  }
};

Declared<DataKind> const memorization_data{
    task_kind<Memorization>("memorization", "keys of a fixed dictionary, whose values no sequence shows: the value after each")};

}  // namespace

}  // namespace heed
