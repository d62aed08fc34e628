#include "experiments/data/parallel.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <numeric>
#include <span>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/ngram.hpp"
#include "experiments/data/pair_batches.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/sha256.hpp"
#include "nn/files/utf8.hpp"

namespace heed {
namespace {

/// A text and its translation, line by line.
struct ParallelText {
  struct Side {
    std::string path, sha256;
    std::vector<std::string> lines;
  };
  Side source, target;
  std::vector<std::size_t> numbers;  ///< line numbers of the pairs in the files, from 0
};

/// A text and its tokenized pairs.
struct Split {
  ParallelText text;
  std::vector<SequencePair> pairs;
};

void count(WordCounts& counts, std::vector<std::string> const& lines) {
  for (auto const& line : lines) count_words(counts, line);
}

std::shared_ptr<Tokenizer const> tokenizer_of(WordCounts const& counts, Index min_count) {
  return word_tokenizer(frequent_words(counts, min_count, "data.least_count"));
}

/// Length of the longest row, its mark included.
Index longest_of(std::initializer_list<Split const*> splits, std::vector<std::int32_t> SequencePair::*side) {
  Index max_length = 0;
  for (auto const* const split : splits)
    for (auto const& pair : split->pairs) max_length = std::max<Index>(max_length, std::ssize(pair.*side) + 1);
  return max_length;
}

/// Throws FileError with the line of the longest sentence if it and its mark are longer than `length`.
void refuse_longer(Split const& split, Index length, std::function<std::string(Index words)> const& message) {
  for (auto const side : {&SequencePair::source, &SequencePair::target}) {
    auto const longest = std::ranges::max_element(split.pairs, {}, [&](SequencePair const& pair) { return (pair.*side).size(); });
    if (longest == split.pairs.end() || std::ssize((*longest).*side) < length) continue;
    auto const& file = side == &SequencePair::source ? split.text.source : split.text.target;
    auto const pair = static_cast<std::size_t>(longest - split.pairs.begin());
    refuse_line(file.path, split.text.numbers[pair] + 1, message(std::ssize((*longest).*side)));
  }
}

/// The target sentences as one text, each between two <eos>.
std::vector<std::int32_t> target_text(std::vector<SequencePair> const& pairs) {
  std::vector<std::int32_t> text{Tokenizer::eos};
  for (auto const& pair : pairs) {
    text.insert(text.end(), pair.target.begin(), pair.target.end());
    text.push_back(Tokenizer::eos);
  }
  return text;
}

void check_line(std::string const& path, std::size_t number, std::string_view line) {
  for (std::size_t i = 0; i < line.size();) {
    auto const start = i;
    if (!decode_utf8(line, i)) refuse_line(path, number, fmt::format("not UTF-8 at byte {} of the line", start));
  }
  auto const words = words_of(line);
  if (words.empty()) refuse_line(path, number, "the line is empty; every line needs a sentence, leave it out of both files");
  for (auto const word : words)
    if (is_mark(word) && word != "<unk>")
      refuse_line(path, number, fmt::format("{} is a special token of the vocabulary, not a word", word));
}

ParallelText::Side read_side(std::filesystem::path const& path) {
  auto const content = read_text(path);
  ParallelText::Side side{path.string(), sha256(content), {}};
  auto const text = without_byte_order_mark(content);
  for (std::size_t begin = 0; begin < text.size();) {
    side.lines.emplace_back(next_line(text, begin));
    check_line(side.path, side.lines.size(), side.lines.back());
  }
  return side;
}

/// A byte-order mark is skipped. Throws FileError naming file and line if a file is missing, a line is empty, not UTF-8 or contains a
/// mark's name, or the files have different numbers of lines.
ParallelText read_texts(std::filesystem::path const& source, std::filesystem::path const& target) {
  ParallelText text{read_side(source), read_side(target), {}};
  auto const &a = text.source, &b = text.target;
  text.numbers.resize(a.lines.size());
  std::iota(text.numbers.begin(), text.numbers.end(), std::size_t{0});
  if (a.lines.size() == b.lines.size()) return text;
  auto const& [more, fewer] = a.lines.size() > b.lines.size() ? std::tie(a, b) : std::tie(b, a);
  refuse_line(
      more.path, fewer.lines.size() + 1,
      fmt::format("no translation: {} ends after {} lines, but this file has {}", fewer.path, fewer.lines.size(), more.lines.size()));
}

/// Without the pairs in which a side has more than `longest` words. Throws FileError if none are left.
ParallelText up_to(ParallelText const& text, Index longest) {
  auto const& [source, target, numbers] = text;
  ParallelText kept{{source.path, source.sha256, {}}, {target.path, target.sha256, {}}, {}};
  auto const fits = [&](std::string const& line) { return std::ssize(words_of(line)) <= longest; };
  for (std::size_t pair = 0; pair < numbers.size(); ++pair) {
    if (!fits(source.lines[pair]) || !fits(target.lines[pair])) continue;
    kept.source.lines.push_back(source.lines[pair]);
    kept.target.lines.push_back(target.lines[pair]);
    kept.numbers.push_back(numbers[pair]);
  }
  if (kept.numbers.empty())
    throw FileError(fmt::format("{}: of its {} pairs none has at most {} words on either side, which data.longest asks for", source.path,
                                numbers.size(), longest));
  return kept;
}

/// Sentences and their translations as word tokens (batch_of), each batch as long as its longest sequence. A vocabulary has the words that
/// occur at least `least_count` times in the training text, in both languages together ("joint") or each in its own ("separate"). Training
/// uses the pairs with at most `longest` words per side, in the batches of PairBatches. The signature covers all texts, so that it does not
/// depend on which is held out. N-gram models are of the target language alone: a model's gain over them is what it learns from the source.
class ParallelDataset : public Dataset {
 public:
  /// Throws Error if there is no test text to be held out, FileError for invalid texts.
  ParallelDataset(ParallelSettings const& settings, DataContext const& context) : settings_(settings), held_out_name_(context.held_out) {
    auto const read = [&](std::string const& stem) {
      auto const source = locate(stem + "." + settings.from, context), target = locate(stem + "." + settings.to, context);
      return read_texts(source, target);
    };
    auto train = read(settings.train);
    std::optional<ParallelText> validation, test;
    if (settings.validation) validation = read(*settings.validation);
    if (settings.test) test = read(*settings.test);
    bool const tests = held_out_name_ == "test";
    if (tests && !test)
      throw Error("data.test: there is no test text; add its files as data.validation has them, without the language at the end");
    auto const all = train.numbers.size();
    if (settings.longest) train = up_to(train, *settings.longest);
    auto const left_out = all - train.numbers.size();
    bool const joint = settings.vocabularies == "joint";
    WordCounts source, target;
    count(joint ? target : source, train.source.lines);
    count(target, train.target.lines);
    facts_.tokenizer = tokenizer_of(target, settings.least_count);
    facts_.source_tokenizer = joint ? facts_.tokenizer : tokenizer_of(source, settings.least_count);
    train_ = encoded(std::move(train));
    Split validated = validation ? encoded(*validation) : Split(), tested = test ? encoded(*test) : Split();
    facts_.signature = pair_signature(facts_.source_tokenizer->vocabulary(), facts_.tokenizer->vocabulary(), joint,
                                      longest_of({&train_, &validated, &tested}, &SequencePair::source),
                                      longest_of({&train_, &validated, &tested}, &SequencePair::target));
    held_out_ = std::move(tests ? tested : validated);
    cut_batches(context.seed);
    state(tests ? validation : test, left_out);
  }

  /// With `tokens` the number of sequences follows from the lengths, not from `batch`. Throws FileError for a pair longer than the context.
  Batch training(Index index, Index batch, Index context) const override {
    check_lengths(train_, context);
    if (batches_->per_epoch(batch) == 0)
      throw FileError(fmt::format("{}: its {} lines are too few for a batch of {}", train_.text.source.path, train_.pairs.size(), batch));
    return batch_of(batches_->rows(index, batch));
  }

  Index validation_batches(Index batch, Index) const override { return (std::ssize(held_out_.pairs) + batch - 1) / batch; }

  /// The pairs in the order of the file; the last batch may be smaller.
  Batch validation(Index index, Index batch, Index context) const override {
    check_lengths(held_out_, context);
    auto const& pairs = held_out_.pairs;
    auto const [first, count] = rows_of_batch(held_out_name_, index, batch, std::ssize(pairs));
    auto const rows = std::span(pairs).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    return batch_of(mapped(rows, [](SequencePair const& pair) { return &pair; }));
  }

  /// The line of the held-out target's file.
  Original original(Index row) const override {
    auto const& lines = held_out_.text.target.lines;
    if (row < 0 || row >= std::ssize(lines)) return {};
    return {.reference = at(lines, row)};
  }

 private:
  void cut_batches(std::uint64_t seed) {
    auto const tokens = settings_.tokens.value_or(0);
    if (tokens > 0)
      refuse_longer(train_, tokens, [&](Index words) {
        return fmt::format(
            "{} words and <eos> are more than a batch of data.tokens: {}; make it {} or more, or leave such lines out by "
            "data.longest: {}",
            words, tokens, words + 1, tokens - 1);
      });
    batches_.emplace(train_.pairs, settings_.pool, tokens, seed);
    auto const most = batches_->max_tokens();
    for (auto given : std::vector(signature().parts())) {
      given.max_tokens = given.name == "source" ? most.source : most.target;
      facts_.signature.set(given);
    }
  }

  Split encoded(ParallelText text) const {
    Split split{std::move(text), {}};
    for (std::size_t pair = 0; pair < split.text.numbers.size(); ++pair)
      split.pairs.push_back({tokens_of(*facts_.source_tokenizer, split.text.source.lines[pair]),
                             tokens_of(*facts_.tokenizer, split.text.target.lines[pair])});
    return split;
  }

  static void check_lengths(Split const& split, Index context) {
    refuse_longer(split, context, [&](Index words) {
      return fmt::format(
          "{} words and <eos> do not fit a context of {}; make model.context {} or more, or leave the line out of both files", words,
          context, words + 1);
    });
  }

  /// `beside`: the text of the split that is not held out; `left_out`: training pairs that were.
  void state(std::optional<ParallelText> const& beside, std::size_t left_out) {
    auto& about = facts_.description;
    about = {{"vocabulary", vocabulary()}, {"source_vocabulary", facts_.source_tokenizer->vocabulary()}};
    auto const add = [&](std::string const& name, ParallelText const& text, std::optional<std::size_t> pairs) {
      for (auto const& [key, side] : {std::pair("source", &text.source), std::pair("target", &text.target)}) {
        facts_.files[fmt::format("{}.{}", name, key)] = {side->path, side->sha256};
        nlohmann::json const file{{"file", side->path}, {"sha256", side->sha256}};
        if (pairs)
          about[name][key] = file;
        else
          about["beside"].push_back(file);
      }
      if (pairs) about[name]["pairs"] = *pairs;
    };
    for (auto const& [name, split] : {std::pair("training", &train_), std::pair(held_out_name_.c_str(), &held_out_)})
      if (!split->pairs.empty()) add(name, split->text, split->pairs.size());
    if (beside) add(held_out_name_ == "test" ? "validation" : "test", *beside, std::nullopt);
    if (settings_.longest) about["training"]["left_out"] = left_out;
    if (settings_.tokens) about["training"]["batch"] = {{"tokens", *settings_.tokens}, {"per_epoch", batches_->per_epoch(0)}};
    facts_.ngrams = std::async(std::launch::deferred, [this] {
      if (held_out_.pairs.empty()) return std::vector<double>();
      return witten_bell(target_text(train_.pairs), target_text(held_out_.pairs), vocabulary(), 6, Tokenizer::eos);
    });
  }

  ParallelSettings settings_;
  std::string held_out_name_;
  Split train_, held_out_;
  std::optional<PairBatches> batches_;
};

std::unique_ptr<Dataset> open_parallel(ParallelSettings const& settings, DataContext const& context) {
  return std::make_unique<ParallelDataset>(settings, context);
}

Declared<DataKind> const parallel_data{data_kind("parallel", "sentences and their translations in two parallel files, tokenized into words",
                                                 open_parallel, DataParts::validation_and_test)};

}  // namespace

std::vector<Field> ParallelSettings::fields() {
  return {field(&train, "train", "training text, named without the language: NAME for the files NAME.de and NAME.en").mandatory(),
          field(&validation, "validation", "validation text, named in the same way"),
          field(&test, "test", "test text, named in the same way; never used in training"),
          field(&from, "from", "source language, the suffix of its files").mandatory(),
          field(&to, "to", "target language").mandatory(),
          field(&vocabularies, "vocabularies", "joint: one for both languages; separate: one for each").one_of({"joint", "separate"}),
          field(&least_count, "least_count", "words with fewer occurrences in the training text are <unk>").in(1, 1e9),
          field(&longest, "longest", "pairs with more words than this on either side are left out of training; default: none").in(1, 1e9),
          field(&pool, "pool", "number of consecutive batches whose pairs are regrouped by length, to reduce padding; 1: no regrouping")
              .in(1, 1e9),
          field(&tokens, "tokens",
                "largest training batch in tokens, padding included: sequences times the longest source or target; replaces train.batch")
              .in(2, 1e9)};
}

std::optional<std::string> ParallelSettings::contradiction() {
  if (from != to) return std::nullopt;
  return fmt::format("to: it is also the source language, {}", from);
}

}  // namespace heed
