// Ordered lookup of two keys in one question. Four keys a … d, four values 0 … 3, three pairs:
//
//     inputs    b 2 d 0 a 3 d b            pairs, then two different keys
//     targets               0 2            the value of the first, and that of the second
//
// Who answers both at one position must attend to two pairs at once: a single head attends to their average, two heads at one each. That is
// what multi-head attention is for (Vaswani et al. 2017, section 3.2.2), and what single_attention with `question: 2` measures. A GPT
// answers each at the key itself, as in recall, or with a delay of 1 at the position after it,
//
//     inputs    b 2 d 0 a 3 d b ·
//     targets               · 0 2
//
// where it first has to look back for the key: much harder to learn.
//
// Token 0 is a blank, 1 … keys are the keys, and the values follow.

#include <fmt/format.h>

#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct Lookup : Task {
  Index pairs = 8;
  Index key_count = 16;
  Index values = 16;
  Index questions = 1;
  Index delay = 0;

  std::vector<Field> keys() override {
    return {field(&pairs, "pairs", "key–value pairs of a sequence; model.context ≥ 2·pairs + (2 + delay)·questions").in(2, 1e6),
            field(&key_count, "keys", "number of different keys").in(2, 1e6),
            field(&values, "values", "number of different values").in(2, 1e6),
            field(&questions, "questions", "questions of two keys each, one after the other").in(1, 1e6),
            field(&delay, "delay", "positions from a key to its answer").in(0, 1e6)};
  }

  std::optional<std::string> contradiction() override {
    if (pairs <= key_count) return std::nullopt;
    return fmt::format("pairs: the keys of a sequence differ, but there are only {} keys for {} pairs", key_count, pairs);
  }

  Index tokens() const override { return 1 + key_count + values; }
  Index shortest_context() const override { return 2 * pairs + (2 + delay) * questions; }
  Index answers() const override { return values; }

  void write(TaskRow const& row, Stream const& draws) const override {
    auto const own_keys = different_numbers(draws.child("keys"), pairs, key_count);
    for (std::size_t i = 0; i < own_keys.size(); ++i) {
      row.inputs[2 * i] = 1 + own_keys[i];
      row.inputs[2 * i + 1] = 1 + key_count + draw_number(draws.child("values"), i, values);
    }
    auto const later = static_cast<std::size_t>(delay);
    for (std::size_t question = 0; question < static_cast<std::size_t>(questions); ++question) {
      auto const asked = different_numbers(draws.child("query").child(question), 2, pairs);
      for (std::size_t i = 0; i < asked.size(); ++i) {
        auto const pair = 2 * static_cast<std::size_t>(asked[i]), position = 2 * own_keys.size() + (2 + later) * question + i;
        row.inputs[position] = row.inputs[pair];
        row.targets[position + later] = row.inputs[pair + 1];
      }
    }
  }
};

Declared<DataKind> const lookup_data{
    task_kind<Lookup>("lookup", "key–value pairs, then a question of two keys: answer with their values, in this order")};

}  // namespace

}  // namespace heed
