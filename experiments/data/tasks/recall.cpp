// Multi-query associative recall (Arora et al. 2023, "Zoology"). Four keys a … d, four values 0 … 3, three pairs, two queries, a context
// of ten tokens:
//
//     inputs    b 2 d 0 a 2 · d · b        pairs, then queries at random positions among blanks
//     targets               · 0 · 2        the value of each key that is asked for; nothing else counts
//
// The keys of a row differ, and no key is asked for twice before all have been. The task requires attention to a token *after* an equal
// one: one attention layer of a GPT cannot do it, two can (Olsson et al. 2022). single_attention reads the pairs directly and can.
//
// Token 0 is a blank, 1 … keys are the keys, and the values follow.

#include <fmt/format.h>

#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct Recall : Task {
  Index pairs = 8;
  Index key_count = 16;
  Index values = 16;
  std::optional<Index> queries;
  bool repeat = true;

  std::vector<Field> keys() override {
    return {field(&pairs, "pairs", "key–value pairs of a sequence").in(1, 1e6),
            field(&key_count, "keys", "number of different keys").in(1, 1e6),
            field(&values, "values", "number of different values").in(2, 1e6),
            field(&queries, "queries", "queries of a sequence (default: as many as pairs); model.context ≥ 2·pairs + queries").in(1, 1e6),
            field(&repeat, "repeat", "true: a value may occur in several pairs of a sequence")};
  }

  std::optional<std::string> contradiction() override {
    if (pairs > key_count)
      return fmt::format("pairs: the keys of a sequence differ, but there are only {} keys for {} pairs", key_count, pairs);
    if (pairs > values && !repeat)
      return fmt::format("repeat: false needs a value for each pair, but there are only {} values for {} pairs", values, pairs);
    return std::nullopt;
  }

  Index asked() const { return queries.value_or(pairs); }
  Index tokens() const override { return 1 + key_count + values; }
  Index shortest_context() const override { return 2 * pairs + asked(); }
  Index answers() const override { return repeat ? values : pairs; }

  void write(TaskRow const& row, Stream const& draws) const override {
    auto const own_keys = different_numbers(draws.child("keys"), pairs, key_count);
    auto const own_values = repeat ? std::vector<Index>() : different_numbers(draws.child("values"), pairs, values);
    for (std::size_t i = 0; i < own_keys.size(); ++i) {
      row.inputs[2 * i] = 1 + own_keys[i];
      row.inputs[2 * i + 1] = 1 + key_count + (repeat ? draw_number(draws.child("values"), i, values) : own_values[i]);
    }
    auto const context = static_cast<Index>(row.inputs.size());
    auto const free = different_numbers(draws.child("places"), asked(), context - 2 * pairs);
    std::vector<Index> order;
    for (std::size_t i = 0; i < free.size(); ++i) {
      auto const round = i / own_keys.size();
      if (i % own_keys.size() == 0) order = different_numbers(draws.child("queries").child(round), pairs, pairs);
      auto const pair = 2 * static_cast<std::size_t>(order[i % own_keys.size()]);
      auto const position = static_cast<std::size_t>(2 * pairs + free[i]);
      row.inputs[position] = row.inputs[pair];
      row.targets[position] = row.inputs[pair + 1];
    }
  }
};

Declared<DataKind> const recall_data{
    task_kind<Recall>("recall", "multi-query associative recall: key–value pairs, then keys: predict their values")};

}  // namespace

}  // namespace heed
