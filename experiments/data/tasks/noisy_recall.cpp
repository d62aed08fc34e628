// Associative recall among noise (Poli et al. 2024, MAD): pairs of key and value, between which tokens of another vocabulary stand. The
// last key is asked for:
//
//     inputs    b 2 ~ d 0 ~ ~ a 1 d
//     targets   · · · · · · · · · 0
//
// Every key is known by then. Tokens: 1 … keys, the values, then the noise. `noise`: share of the positions between pairs.

#include <fmt/format.h>

#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct NoisyRecall : Task {
  Index pairs = 8, key_count = 16, values = 16, noises = 16;
  double noise = 0.2;

  std::vector<Field> keys() override {
    return {field(&pairs, "pairs", "key–value pairs of a sequence; model.context > 2·pairs").in(1, 1e5),
            field(&key_count, "keys", "number of different keys").in(1, 1e6),
            field(&values, "values", "number of different values").in(2, 1e6),
            field(&noises, "noises", "number of different tokens of noise").in(1, 1e6),
            field(&noise, "noise", "probability of noise before each pair, again and again while there is room").in(0, 0.99)};
  }
  std::optional<std::string> contradiction() override {
    if (pairs > key_count)
      return fmt::format("pairs: the keys of a sequence differ, but there are only {} keys for {} pairs", key_count, pairs);
    return std::nullopt;
  }
  Index tokens() const override { return 1 + key_count + values + noises; }
  Index shortest_context() const override { return 2 * pairs + 1; }
  Index answers() const override { return values; }

  void write(TaskRow const& row, Stream const& draws) const override {
    auto const own = different_numbers(draws.child("keys"), pairs, key_count);
    Index room = static_cast<Index>(row.inputs.size()) - shortest_context();
    std::size_t at = 0, draw = 0;
    std::vector<Index> of_key;
    for (std::size_t i = 0; i < own.size(); ++i) {
      while (room > 0 && draws.child("noise").uniform(draw++) < noise) {
        row.inputs[at] = 1 + key_count + values + draw_number(draws.child("tokens"), at, noises);
        ++at, --room;
      }
      of_key.push_back(1 + key_count + draw_number(draws.child("values"), i, values));
      row.inputs[at++] = 1 + own[i];
      row.inputs[at++] = of_key.back();
    }
    auto const asked = draws.child("asked").below(0, own.size());
    row.inputs[at] = 1 + own[asked];
    row.targets[at] = of_key[asked];
  }
};

Declared<DataKind> const noisy_recall_data{
    task_kind<NoisyRecall>("noisy_recall", "key-value pairs among noise: the value of the last key")};

}  // namespace

}  // namespace heed
