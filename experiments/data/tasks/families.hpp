#pragma once

#include <algorithm>

#include <fmt/format.h>

#include "experiments/data/tasks/task.hpp"

/// What several tasks have in common.
namespace heed {

/// A task whose sequences are random tokens 1 … vocabulary, followed by an answer that they determine:
///
///     inputs    c a b · x y          forced: the answer's earlier tokens are given
///     targets   · · · x y z
struct SequenceTask : Task {
  Index length = 10;
  std::optional<Index> shortest;
  std::optional<Index> test_length;
  bool fill = false;
  Index vocabulary = 16;
  bool forced = true;

  /// Turns the sequence into its answer: by default a copy.
  virtual void transform(std::span<Index>) const {}

  std::vector<Field> keys() override {
    return {field(&length, "length", "tokens of a sequence; model.context ≥ 2·length").in(1, 1e6),
            field(&shortest, "shortest", "training lengths are uniform between this and length (default: all sequences have length)")
                .in(1, 1e6),
            field(&test_length, "test_length", "tokens of held-out sequences (default: length)").in(1, 1e6),
            field(&fill, "fill",
                  "true: held-out sequences have half of the context's tokens, whatever it is: for train.evaluate.lengths, which count "
                  "question and answer"),
            field(&vocabulary, "vocabulary", "number of different tokens").in(2, 1e6),
            field(&forced, "forced",
                  "teacher forcing: the answer's earlier tokens are given; false: blanks, all is predicted at once (required for "
                  "bidirectional models)")};
  }

  std::optional<std::string> contradiction() override {
    if (shortest && *shortest > length) return "shortest: it is more than length";
    if (fill && test_length) return "test_length: with fill: true held-out sequences have as many tokens as fit into the context";
    return std::nullopt;
  }

  TaskSizes sizes() const override {
    return {.tokens = 1 + vocabulary, .shortest_context = 2 * std::max(length, test_length.value_or(length)), .answers = vocabulary};
  }

  void write(TaskRow const& row, Stream const& draws) const override {
    Index const min_length = shortest.value_or(length);
    Index const drawn = min_length + draw_number(draws.child("length"), 0, length - min_length + 1);
    Index const tested = fill ? std::ssize(row.inputs) / 2 : test_length.value_or(length);
    auto const size = static_cast<std::size_t>(row.held_out ? tested : drawn);
    auto const question = row.inputs.first(size), answer = row.targets.subspan(size, size);
    for (std::size_t i = 0; i < size; ++i) question[i] = answer[i] = 1 + draw_number(draws.child("tokens"), i, vocabulary);
    transform(answer);
    if (forced) std::copy_n(answer.begin(), size - 1, row.inputs.begin() + static_cast<std::ptrdiff_t>(size) + 1);
  }
};

/// A task whose sequences hold pairs of a key and a value, with different keys. Tokens after the blank: the keys, then the values.
struct KeyValueTask : Task {
  Index pairs = 8, key_count = 16, values = 16;

  std::vector<Field> keys() override {
    return {field(&pairs, "pairs", "key–value pairs of a sequence").in(1, 1e6),
            field(&key_count, "keys", "number of different keys").in(1, 1e6),
            field(&values, "values", "number of different values").in(2, 1e6)};
  }
  std::optional<std::string> contradiction() override {
    if (pairs <= key_count) return std::nullopt;
    return fmt::format("pairs: the keys of a sequence differ, but there are only {} keys for {} pairs", key_count, pairs);
  }

 protected:
  struct KeyValue {
    Index key, value;  ///< tokens
  };
  /// The pairs of a sequence; `repeat`: a value may occur in several.
  std::vector<KeyValue> draw_pairs(Stream const& draws, bool repeat = true) const {
    auto const own_keys = different_numbers(draws.child("keys"), pairs, key_count);
    auto const own_values = repeat ? std::vector<Index>() : different_numbers(draws.child("values"), pairs, values);
    std::vector<KeyValue> all;
    for (std::size_t i = 0; i < own_keys.size(); ++i)
      all.push_back({1 + own_keys[i], 1 + key_count + (repeat ? draw_number(draws.child("values"), i, values) : own_values[i])});
    return all;
  }
  /// Writes pairs at the beginning of a row.
  static void put(TaskRow const& row, std::vector<KeyValue> const& all) {
    for (std::size_t i = 0; i < all.size(); ++i) row.inputs[2 * i] = all[i].key, row.inputs[2 * i + 1] = all[i].value;
  }
};

}  // namespace heed
