// Multi-query associative recall (Arora et al. 2023, "Zoology"). Four keys a … d, four values 0 … 3, three pairs, two queries:
//
//     inputs    b 2 d 0 a 2 · d · b        pairs, then queries at random positions among blanks
//     targets               · 0 · 2        the value of each key that is asked for; nothing else counts
//
// The keys of a row differ, and no key is asked for twice before all have been. The task requires attention to a token *after* an equal
// one: one attention layer of a GPT cannot do it, two can (Olsson et al. 2022). single_attention reads the pairs directly and can.
//
// Token 0 is a blank, 1 … keys are the keys, and the values follow.

#include <fmt/format.h>

#include "experiments/data/tasks/key_values.hpp"

namespace heed {

namespace {

struct Recall : KeyValueTask {
  std::optional<Index> queries;
  bool repeat = true;

  std::vector<Field> keys() override {
    return extended(
        KeyValueTask::keys(),
        {field(&queries, "queries", "queries of a sequence (default: as many as pairs); model.context ≥ 2·pairs + queries").in(1, 1e6),
         field(&repeat, "repeat", "true: a value may occur in several pairs of a sequence")});
  }
  std::optional<std::string> contradiction() override {
    if (pairs <= values || repeat) return KeyValueTask::contradiction();
    return fmt::format("repeat: false needs a value for each pair, but there are only {} values for {} pairs", values, pairs);
  }
  Index asked() const { return queries.value_or(pairs); }
  TaskSizes sizes() const override {
    return {.tokens = 1 + key_count + values, .shortest_context = 2 * pairs + asked(), .answers = repeat ? values : pairs};
  }

  void write(TaskRow const& row, Stream const& draws) const override {
    auto const own = draw_pairs(draws, repeat);
    put(row, own);
    auto const context = static_cast<Index>(row.inputs.size());
    auto const free = different_numbers(draws.child("places"), asked(), context - 2 * pairs);
    std::vector<Index> order;
    for (std::size_t i = 0; i < free.size(); ++i) {
      auto const round = i / own.size();
      if (i % own.size() == 0) order = different_numbers(draws.child("queries").child(round), pairs, pairs);
      auto const position = static_cast<std::size_t>(2 * pairs + free[i]);
      auto const& [key, value] = at(own, order[i % own.size()]);
      row.inputs[position] = key;
      row.targets[position] = value;
    }
  }
};

Declared<DataKind> const recall_data{
    task_kind<Recall>("recall", "multi-query associative recall: key–value pairs, then keys: predict their values")};

}  // namespace

}  // namespace heed
