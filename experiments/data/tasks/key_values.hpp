#pragma once

#include <fmt/format.h>

#include "experiments/data/tasks/task.hpp"

namespace heed {

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
