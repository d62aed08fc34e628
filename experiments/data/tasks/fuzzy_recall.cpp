// Associative recall of keys and values that are several tokens long (Poli et al. 2024, MAD, "fuzzy"). Two pairs, of up to two tokens:
//
//     inputs    a b , 1 ; c , 2 1 ; c ,
//     targets   · · · · · · · · · · · 2     then the rest of the value: 2 1
//
// An answer's tokens are predicted one after another, the earlier ones in the inputs. Tokens: 1 the comma, 2 the semicolon, keys', values'.

#include <fmt/format.h>

#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct FuzzyRecall : Task {
  Index pairs = 4, longest = 3, key_count = 16, values = 16;

  std::vector<Field> keys() override {
    return {field(&pairs, "pairs", "key–value pairs of a sequence; model.context ≥ (pairs + 1)·2·(longest + 1)").in(1, 1e4),
            field(&longest, "longest", "tokens of the longest key and value").in(1, 100),
            field(&key_count, "keys", "number of different tokens of keys").in(2, 1e6),
            field(&values, "values", "number of different tokens of values").in(2, 1e6)};
  }
  std::optional<std::string> contradiction() override {
    if (pairs > key_count)
      return fmt::format("pairs: the first tokens of the keys differ, but there are only {} for {} pairs", key_count, pairs);
    return std::nullopt;
  }
  TaskSizes sizes() const override {
    return {.tokens = 3 + key_count + values, .shortest_context = (pairs + 1) * 2 * (longest + 1), .answers = values};
  }

  void write(TaskRow const& row, Stream const& draws) const override {
    auto const firsts = different_numbers(draws.child("keys"), pairs, key_count);
    std::vector<std::vector<Index>> keys_of, values_of;
    std::size_t at = 0;
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      Stream const own = draws.child(i);
      keys_of.push_back({3 + firsts[i]});
      for (Index more = draw_number(own.child("key length"), 0, longest); more > 0; --more)
        keys_of.back().push_back(3 + draw_number(own.child("key"), static_cast<std::size_t>(more), key_count));
      values_of.emplace_back();
      for (Index more = draw_number(own.child("value length"), 0, longest); more >= 0; --more)
        values_of.back().push_back(3 + key_count + draw_number(own.child("value"), static_cast<std::size_t>(more), values));
      put(row, at, keys_of.back(), 1), put(row, at, values_of.back(), 2);
    }
    auto const asked = draws.child("asked").below(0, firsts.size());
    put(row, at, keys_of[asked], 1);
    for (Index const token : values_of[asked]) {
      row.targets[at - 1] = token;
      if (at < row.inputs.size()) row.inputs[at++] = token;
    }
  }

 private:
  static void put(TaskRow const& row, std::size_t& at, std::vector<Index> const& tokens, Index end) {
    for (Index const token : tokens) row.inputs[at++] = token;
    row.inputs[at++] = end;
  }
};

Declared<DataKind> const fuzzy_recall_data{
    task_kind<FuzzyRecall>("fuzzy_recall", "key-value pairs of several tokens: the value of the last key")};

}  // namespace

}  // namespace heed
