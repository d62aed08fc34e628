// A number in digits, and in words:
//
//     source    1 2 0 5 6
//     target    twelve thousand fifty six
//
// A word comes from one digit ("fifty"), from one of two ("twelve"), or from three or fewer ("thousand"); a digit may lead to two words
// ("two hundred"), or as 0 to none.

#include <algorithm>
#include <array>
#include <string_view>

#include "experiments/data/pairs/pair_task.hpp"
#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

constexpr std::array<std::string_view, 20> number_words{"zero",     "one",     "two",     "three",     "four",     "five",    "six",
                                                        "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
                                                        "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array<std::string_view, 10> tens{"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};
constexpr std::array<std::string_view, 3> group_words{"", "thousand", "million"};

std::vector<std::string> sorted_words() {
  std::vector<std::string> all{"hundred"};
  for (char digit = '0'; digit <= '9'; ++digit) all.emplace_back(1, digit);
  all.insert(all.end(), number_words.begin(), number_words.end());
  all.insert(all.end(), tens.begin() + 2, tens.end());
  all.insert(all.end(), group_words.begin() + 1, group_words.end());
  std::ranges::sort(all);
  return all;
}

std::int32_t word_number(std::string_view word) {
  static auto const words = sorted_words();
  return static_cast<std::int32_t>(std::ranges::lower_bound(words, word) - words.begin());
}

/// The three digits of a group, of which the last is at a position.
void say_group(PairRow& row, int value, std::size_t last) {
  int const hundreds = value / 100, rest = value % 100;
  if (hundreds > 0) {
    row.say(word_number(at(number_words, hundreds)), last - 2);
    row.say(word_number("hundred"), last - 2);
  }
  if (rest >= 10 && rest < 20) {
    row.say(word_number(at(number_words, rest)));
    row.link_last_to(last - 1, last + 1);
    return;
  }
  if (rest >= 20) row.say(word_number(at(tens, rest / 10)), last - 1);
  if (rest % 10 > 0) row.say(word_number(at(number_words, rest % 10)), last);
}

struct DigitPairs : PairTask {
  Index length = 6;
  Index shortest = 1;
  std::optional<Index> test_length;

  std::vector<Field> fields() override {
    return {field(&length, "length", "largest number of digits").in(1, 9),
            field(&shortest, "shortest", "smallest number of digits").in(1, 9),
            field(&test_length, "test_length", "number of digits of held-out numbers (default: as in training)").in(1, 9)};
  }

  std::optional<std::string> contradiction() override {
    if (shortest <= length) return std::nullopt;
    return "shortest: it is more than length";
  }

  std::vector<std::string> words() const override { return sorted_words(); }

  std::pair<Index, Index> longest() const override {
    auto const digits = std::max(length, test_length.value_or(length));
    return {digits, digits % 3 + 4 * (digits / 3) + (digits - 1) / 3};
  }

  PairRow draw(Stream const& draws, bool held_out) const override {
    auto const drawn = shortest + draw_number(draws.child("length"), 0, length - shortest + 1);
    auto const size = static_cast<std::size_t>(held_out ? test_length.value_or(drawn) : drawn);
    PairRow row;
    int value = 0;  // of a group
    for (std::size_t i = 0, first = 0; i < size; ++i) {
      auto const min_digit = i == 0 && size > 1 ? 1 : 0;  // no number but 0 begins with 0
      auto const digit = min_digit + static_cast<int>(draw_number(draws.child("digits"), i, 10 - min_digit));
      row.source.push_back(word_number(std::to_string(digit)));
      if (size == 1 && digit == 0) row.say(word_number(number_words[0]), 0);
      value = 10 * value + digit;
      auto const group = (size - 1 - i) / 3;
      if ((size - 1 - i) % 3 != 0) continue;
      say_group(row, value, i);
      if (value > 0 && group > 0) {
        row.say(word_number(group_words[group]));
        row.link_last_to(first, i + 1);
      }
      first = i + 1;
      value = 0;
    }
    return row;
  }
};

Declared<PairKind> const digits_pair{{"digits", "spell a number out in words", [] { return std::make_shared<DigitPairs>(); }}};

}  // namespace

}  // namespace heed
