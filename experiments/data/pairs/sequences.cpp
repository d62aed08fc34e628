#include <algorithm>

#include <fmt/format.h>

#include "experiments/data/pairs/pair_task.hpp"
#include "experiments/data/tasks/task.hpp"

namespace heed {
namespace {

/// A task whose source is a sequence of random words 1 … vocabulary.
struct RandomPairs : PairTask {
  Index length = 10;
  std::optional<Index> shortest, test_length, test_shortest;
  Index vocabulary = 16;

  /// Appends the target to `row`, whose source is set and may be changed; word ids 0 … vocabulary − 1.
  virtual void answer(PairRow& row) const = 0;
  /// The most target words per source word.
  virtual Index max_growth() const { return 1; }

  std::vector<Field> fields() override {
    return {
        field(&length, "length", "words of a source").in(1, 1e6),
        field(&shortest, "shortest", "training lengths are uniform between this and length (default: all sources have length)").in(1, 1e6),
        field(&test_length, "test_length", "words of held-out sources (default: length)").in(1, 1e6),
        field(&test_shortest, "test_shortest", "held-out lengths are uniform between this and test_length (default: all are test_length)")
            .in(1, 1e6),
        field(&vocabulary, "vocabulary", "number of different words of a source").in(2, 1e6)};
  }

  std::optional<std::string> contradiction() override {
    if (shortest && *shortest > length) return "shortest: it is more than length";
    if (test_shortest && *test_shortest > test_length.value_or(length)) return "test_shortest: it is more than test_length";
    return std::nullopt;
  }

  std::vector<std::string> words() const override {
    auto const width = std::to_string(vocabulary).size();  // so that their order as texts is that of the numbers
    std::vector<std::string> all;
    for (Index word = 1; word <= vocabulary; ++word) all.push_back(fmt::format("{:0{}}", word, width));
    return all;
  }

  std::pair<Index, Index> longest() const override {
    auto const words = std::max(length, test_length.value_or(length));
    return {words, max_growth() * words};
  }

  PairRow draw(Stream const& draws, bool held_out) const override {
    auto const max_words = held_out ? test_length.value_or(length) : length;
    auto const min_words = held_out ? test_shortest.value_or(max_words) : shortest.value_or(length);
    PairRow row;
    row.source.resize(static_cast<std::size_t>(min_words + draw_number(draws.child("length"), 0, max_words - min_words + 1)));
    for (std::size_t i = 0; i < row.source.size(); ++i)
      row.source[i] = static_cast<std::int32_t>(draw_number(draws.child("words"), i, vocabulary));
    answer(row);
    return row;
  }
};

/// A sequence, and the same again:
///
///     source    c a b b
///     target    c a b b
///
/// Word i comes from word i: attention moves one position per step. With `first` all sequences begin with the same word, as those of the
/// Annotated Transformer do (Rush 2018), whose decoder is given that word: its loss covers the others alone.
struct CopyPairs : RandomPairs {
  std::optional<Index> first;

  std::vector<Field> fields() override {
    return extended(
        RandomPairs::fields(),
        {field(&first, "first", "first word of all sequences; on held-out data it and the end are not scored (default: any word)")
             .in(1, 1e6)});
  }

  std::optional<std::string> contradiction() override {
    if (first && *first > vocabulary) return fmt::format("first: {} is not a word from 1 to {}", *first, vocabulary);
    if (first && std::min(shortest.value_or(length), test_length.value_or(length)) < 2)
      return "first: a sequence of one word would have nothing to copy";
    return RandomPairs::contradiction();
  }

  void answer(PairRow& row) const override {
    if (first) row.source.front() = static_cast<std::int32_t>(*first - 1);
    row.certain = first.has_value();
    for (std::size_t i = 0; i < row.source.size(); ++i) row.say(row.source[i], i);
  }
};

Declared<PairKind> const copy_pair{{"copy", "copy a sequence", [] { return std::make_shared<CopyPairs>(); }}};

/// A sequence, and the same backwards:
///
///     source    c a b b
///     target    b b a c
///
/// The first word comes from the last one, whose position a left-to-right alignment cannot know.
struct ReversePairs : RandomPairs {
  void answer(PairRow& row) const override {
    for (auto i = row.source.size(); i-- > 0;) row.say(row.source[i], i);
  }
};

Declared<PairKind> const reverse_pair{{"reverse", "reverse a sequence", [] { return std::make_shared<ReversePairs>(); }}};

/// A sequence, and its words in order:
///
///     source    c a b b
///     target    a b b c
///
/// Where to attend depends on the content of all positions. A repeated word comes from either position.
struct SortPairs : RandomPairs {
  void answer(PairRow& row) const override {
    auto const& source = row.source;
    auto ordered = source;
    std::ranges::sort(ordered);
    for (auto const word : ordered) {
      row.say(word);
      bool const once = std::ranges::count(source, word) == 1;
      for (std::size_t i = 0; i < source.size(); ++i)
        if (source[i] == word) row.links.push_back({std::ssize(row.target) - 1, static_cast<Index>(i), once});
    }
  }
};

Declared<PairKind> const sort_pair{{"sort", "sort the words of a sequence", [] { return std::make_shared<SortPairs>(); }}};

/// A sequence, and the same with a word put in after each that is of the upper half of the vocabulary. Of four words a … d:
///
///     source    c a b d
///     target    c + a b d +
///
/// Attention moves as in copy but must pause: the position in the target does not determine the position in the source (Luong et al. 2015,
/// local-m against local-p). The inserted word has no source.
struct Insert : RandomPairs {
  std::vector<std::string> words() const override {
    auto all = RandomPairs::words();
    all.emplace_back("and");  // behind all digits
    return all;
  }

  Index max_growth() const override { return 2; }

  void answer(PairRow& row) const override {
    for (std::size_t i = 0; i < row.source.size(); ++i) {
      row.say(row.source[i], i);
      if (row.source[i] >= vocabulary - vocabulary / 2) row.say(static_cast<std::int32_t>(vocabulary));
    }
  }
};

Declared<PairKind> const insert_pair{
    {"insert", "insert a word after each word of the upper half of the vocabulary", [] { return std::make_shared<Insert>(); }}};

/// A sequence, and the same with each word w repeated w mod most + 1 times (once, twice or three times for most = 3):
///
///     source    a b c a
///     target    a b b c c c a
///
/// Attention stays on a word for a number of steps that depends on the word: source and target differ in length, not by a constant factor.
struct StretchPairs : RandomPairs {
  Index times = 3;

  std::vector<Field> fields() override {
    return extended(RandomPairs::fields(), {field(&times, "most", "largest number of repetitions of a word").in(1, 1e3)});
  }

  Index max_growth() const override { return times; }

  void answer(PairRow& row) const override {
    for (std::size_t i = 0; i < row.source.size(); ++i)
      for (Index again = 0; again <= row.source[i] % times; ++again) row.say(row.source[i], i);
  }
};

Declared<PairKind> const stretch_pair{
    {"stretch", "repeat each word as often as its number requires", [] { return std::make_shared<StretchPairs>(); }}};

}  // namespace
}  // namespace heed
