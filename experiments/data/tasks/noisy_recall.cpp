// Associative recall among noise (Poli et al. 2024, MAD): pairs of key and value, between which tokens of another vocabulary stand. The
// last key is asked for:
//
//     inputs    b 2 ~ d 0 ~ ~ a 1 d
//     targets   · · · · · · · · · 0
//
// Every key is known by then. Tokens: 1 … keys, the values, then the noise. `noise`: share of the positions between pairs.

#include "experiments/data/tasks/key_values.hpp"

namespace heed {

namespace {

struct NoisyRecall : KeyValueTask {
  Index noises = 16;
  double noise = 0.2;

  std::vector<Field> keys() override {
    return extended(KeyValueTask::keys(),
                    {field(&noises, "noises", "number of different tokens of noise").in(1, 1e6),
                     field(&noise, "noise", "probability of noise before each pair, again and again while there is room").in(0, 0.99)});
  }
  TaskSizes sizes() const override {
    return {.tokens = 1 + key_count + values + noises, .shortest_context = 2 * pairs + 1, .answers = values};
  }

  void write(TaskRow const& row, Stream const& draws) const override {
    auto const own = draw_pairs(draws);
    Index room = static_cast<Index>(row.inputs.size()) - sizes().shortest_context;
    std::size_t at = 0, draw = 0;
    for (auto const& [key, value] : own) {
      while (room > 0 && draws.child("noise").uniform(draw++) < noise) {
        row.inputs[at] = 1 + key_count + values + draw_number(draws.child("tokens"), at, noises);
        ++at, --room;
      }
      row.inputs[at++] = key;
      row.inputs[at++] = value;
    }
    auto const& [key, value] = own[draws.child("asked").below(0, own.size())];
    row.inputs[at] = key;
    row.targets[at] = value;
  }
};

Declared<DataKind> const noisy_recall_data{
    task_kind<NoisyRecall>("noisy_recall", "key-value pairs among noise: the value of the last key")};

}  // namespace

}  // namespace heed
