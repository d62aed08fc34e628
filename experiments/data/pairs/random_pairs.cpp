#include <algorithm>

#include <fmt/format.h>

#include "experiments/data/pairs/pair_task.hpp"
#include "experiments/data/tasks/task.hpp"

namespace heed {

std::vector<Field> RandomPairs::fields() {
  return {
      field(&length, "length", "words of a source").in(1, 1e6),
      field(&shortest, "shortest", "training lengths are uniform between this and length (default: all sources have length)").in(1, 1e6),
      field(&test_length, "test_length", "words of held-out sources (default: length)").in(1, 1e6),
      field(&test_shortest, "test_shortest", "held-out lengths are uniform between this and test_length (default: all are test_length)")
          .in(1, 1e6),
      field(&vocabulary, "vocabulary", "number of different words of a source").in(2, 1e6)};
}

std::optional<std::string> RandomPairs::contradiction() {
  if (shortest && *shortest > length) return "shortest: it is more than length";
  if (test_shortest && *test_shortest > test_length.value_or(length)) return "test_shortest: it is more than test_length";
  return std::nullopt;
}

std::vector<std::string> RandomPairs::words() const {
  auto const width = std::to_string(vocabulary).size();  // so that their order as texts is that of the numbers
  std::vector<std::string> all;
  for (Index word = 1; word <= vocabulary; ++word) all.push_back(fmt::format("{:0{}}", word, width));
  return all;
}

std::pair<Index, Index> RandomPairs::longest() const {
  auto const words = std::max(length, test_length.value_or(length));
  return {words, max_growth() * words};
}

PairRow RandomPairs::draw(Stream const& draws, bool held_out) const {
  auto const max_words = held_out ? test_length.value_or(length) : length;
  auto const min_words = held_out ? test_shortest.value_or(max_words) : shortest.value_or(length);
  PairRow row;
  row.source.resize(static_cast<std::size_t>(min_words + draw_number(draws.child("length"), 0, max_words - min_words + 1)));
  for (std::size_t i = 0; i < row.source.size(); ++i)
    row.source[i] = static_cast<std::int32_t>(draw_number(draws.child("words"), i, vocabulary));
  answer(row);
  return row;
}

}  // namespace heed
