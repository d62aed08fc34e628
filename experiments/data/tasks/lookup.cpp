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

#include "experiments/data/tasks/key_values.hpp"

namespace heed {

namespace {

struct Lookup : KeyValueTask {
  Index questions = 1, delay = 0;

  std::vector<Field> keys() override {
    auto all = extended(KeyValueTask::keys(), {field(&questions, "questions",
                                                     "questions of two keys each, one after the other; model.context ≥ 2·pairs + "
                                                     "(2 + delay)·questions")
                                                   .in(1, 1e6),
                                               field(&delay, "delay", "positions from a key to its answer").in(0, 1e6)});
    all.front().min = 2;  // pairs: a question asks for two
    return all;
  }
  TaskSizes sizes() const override {
    return {.tokens = 1 + key_count + values, .shortest_context = 2 * pairs + (2 + delay) * questions, .answers = values};
  }

  void write(TaskRow const& row, Stream const& draws) const override {
    auto const own = draw_pairs(draws);
    put(row, own);
    auto const later = static_cast<std::size_t>(delay);
    for (std::size_t question = 0; question < static_cast<std::size_t>(questions); ++question) {
      auto const asked = different_numbers(draws.child("query").child(question), 2, pairs);
      for (std::size_t i = 0; i < asked.size(); ++i) {
        auto const position = 2 * own.size() + (2 + later) * question + i;
        row.inputs[position] = at(own, asked[i]).key;
        row.targets[position + later] = at(own, asked[i]).value;
      }
    }
  }
};

Declared<DataKind> const lookup_data{
    task_kind<Lookup>("lookup", "key–value pairs, then a question of two keys: answer with their values, in this order")};

}  // namespace

}  // namespace heed
