#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/ngram.hpp"
#include "experiments/data/open.hpp"
#include "experiments/data/pair_batches.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/sha256.hpp"
#include "nn/files/utf8.hpp"

namespace heed {
namespace {

/// `data: {kind: parallel, train: multi30k/tok/train.lc.norm.tok, validation: multi30k/tok/val.lc.norm.tok, from: de, to: en}`
struct ParallelSettings : Settings {
  std::string train, from, to;
  std::optional<std::string> validation, test;
  std::string vocabularies = "joint";
  Index least_count = 2;
  std::optional<Index> longest;
  Index pool = 100;
  std::optional<Index> tokens;

  std::vector<Field> fields() override {
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
  std::optional<std::string> contradiction() override {
    if (from != to) return std::nullopt;
    return fmt::format("to: it is also the source language, {}", from);
  }
};

/// A text and its translation.
struct ParallelText {
  struct LinePair {
    std::size_t number;  ///< in the files, from 1
    std::string source, target;
  };
  HashedFile source, target;
  std::vector<LinePair> lines;
  std::vector<SequencePair> pairs;  ///< their tokens
};

/// Throws FileError with the line of the longest sentence if it and its mark are longer than `length`. The message is formatted from its
/// number of words, `length`, and the two numbers that would do: words + 1, length − 1.
void refuse_longer(ParallelText const& text, Index length, std::string_view message) {
  for (auto const side : {&SequencePair::source, &SequencePair::target}) {
    auto const longest = std::ranges::max_element(text.pairs, {}, [&](SequencePair const& pair) { return (pair.*side).size(); });
    if (longest == text.pairs.end() || std::ssize((*longest).*side) < length) continue;
    auto const words = std::ssize((*longest).*side);
    refuse_line((side == &SequencePair::source ? text.source : text.target).file, at(text.lines, longest - text.pairs.begin()).number,
                fmt::format(fmt::runtime(message), words, length, words + 1, length - 1));
  }
}

constexpr char const* too_long_for_context =
    "{} words and <eos> do not fit a context of {}; make model.context {} or more, or leave the line out of both files";

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

std::vector<std::string> read_lines(fs::path const& path, HashedFile& file) {
  auto const content = read_text(path);
  file = {path.string(), sha256(content)};
  std::vector<std::string> lines;
  auto const text = without_byte_order_mark(content);
  for (std::size_t begin = 0; begin < text.size();) {
    lines.emplace_back(next_line(text, begin));
    check_line(file.file, lines.size(), lines.back());
  }
  return lines;
}

/// Throws FileError naming file and line for a line that is empty, not UTF-8, contains a mark's name, or is missing in the other file.
ParallelText read_texts(fs::path const& source, fs::path const& target) {
  ParallelText text;
  auto a = read_lines(source, text.source), b = read_lines(target, text.target);
  auto const [fewer, more] = std::minmax({a.size(), b.size()});
  auto const& [shorter, longer] = a.size() < b.size() ? std::tie(text.source, text.target) : std::tie(text.target, text.source);
  if (fewer < more)
    refuse_line(longer.file, fewer + 1,
                fmt::format("no translation: {} ends after {} lines, but this file has {}", shorter.file, fewer, more));
  for (std::size_t i = 0; i < a.size(); ++i) text.lines.push_back({i + 1, std::move(a[i]), std::move(b[i])});
  return text;
}

/// Leaves out the pairs in which a side has more than `longest` words. Throws FileError if none are left.
void leave_out_longer(ParallelText& text, Index longest) {
  auto const all = text.lines.size();
  auto const is_longer = [&](std::string const& sentence) { return std::ssize(words_of(sentence)) > longest; };
  std::erase_if(text.lines, [&](ParallelText::LinePair const& line) { return is_longer(line.source) || is_longer(line.target); });
  if (text.lines.empty())
    throw FileError(fmt::format("{}: of its {} pairs none has at most {} words on either side, which data.longest asks for",
                                text.source.file, all, longest));
}

/// Sentences and their translations as word tokens (batch_of), each batch as long as its longest sequence. A vocabulary has the words that
/// occur at least `least_count` times in the training text, in both languages together ("joint") or each in its own ("separate"). Training
/// uses the pairs with at most `longest` words per side, in the batches of PairBatches. The signature covers all texts, so that it does not
/// depend on which is held out. N-gram models are of the target language alone: a model's gain over them is what it learns from the source.
class ParallelDataset : public Dataset {
 public:
  /// Throws Error if there is no test text to be held out, FileError for invalid texts.
  ParallelDataset(ParallelSettings const& settings, DataContext const& context) : settings_(settings), held_out_name_(context.held_out) {
    auto const read = [&](std::optional<std::string> const& stem) {
      if (!stem) return ParallelText();
      auto const source = locate(*stem + "." + settings.from, context), target = locate(*stem + "." + settings.to, context);
      return read_texts(source, target);
    };
    train_ = read(settings.train);
    auto validation = read(settings.validation), test = read(settings.test);
    bool const tests = held_out_name_ == "test", joint = settings.vocabularies == "joint";
    if (tests && !settings.test)
      throw Error("data.test: there is no test text; add its files as data.validation has them, without the language at the end");
    auto const all = train_.lines.size();
    if (settings.longest) leave_out_longer(train_, *settings.longest);
    WordCounts source, target;
    for (auto const& line : train_.lines) {
      count_words(joint ? target : source, line.source);
      count_words(target, line.target);
    }
    auto const tokenizer_of = [&](WordCounts const& counts) {
      return word_tokenizer(frequent_words(counts, settings.least_count, "data.least_count"));
    };
    facts_.tokenizer = tokenizer_of(target);
    facts_.source_tokenizer = joint ? facts_.tokenizer : tokenizer_of(source);
    Index longest_source = 0, longest_target = 0;
    for (auto* const text : {&train_, &validation, &test})
      for (auto const& line : text->lines) {
        text->pairs.push_back({tokens_of(*facts_.source_tokenizer, line.source), tokens_of(*facts_.tokenizer, line.target)});
        longest_source = std::max<Index>(longest_source, std::ssize(text->pairs.back().source) + 1);
        longest_target = std::max<Index>(longest_target, std::ssize(text->pairs.back().target) + 1);
      }
    auto const tokens = settings.tokens.value_or(0);
    if (tokens > 0)
      refuse_longer(train_, tokens,
                    "{} words and <eos> are more than a batch of data.tokens: {}; make it {} or more, or leave such lines out by "
                    "data.longest: {}");
    batches_.emplace(train_.pairs, settings.pool, tokens, context.seed);
    facts_.signature = pair_signature(facts_.source_tokenizer->vocabulary(), facts_.tokenizer->vocabulary(), joint, longest_source,
                                      longest_target, batches_->max_tokens());
    held_out_ = std::move(tests ? test : validation);
    state(tests ? validation : test, all - train_.lines.size());
  }

  /// With `tokens` the number of sequences follows from the lengths, not from `batch`. Throws FileError for a pair longer than the context.
  Batch training(Index index, Index batch, Index context) const override {
    refuse_longer(train_, context, too_long_for_context);
    if (batches_->per_epoch(batch) == 0)
      throw FileError(fmt::format("{}: its {} lines are too few for a batch of {}", train_.source.file, train_.pairs.size(), batch));
    return batch_of(batches_->rows(index, batch));
  }

  Index validation_batches(Index batch, Index) const override { return (std::ssize(held_out_.pairs) + batch - 1) / batch; }

  /// The pairs in the order of the file; the last batch may be smaller.
  Batch validation(Index index, Index batch, Index context) const override {
    refuse_longer(held_out_, context, too_long_for_context);
    auto const& pairs = held_out_.pairs;
    auto const [first, count] = rows_of_batch(held_out_name_, index, batch, std::ssize(pairs));
    auto const rows = std::span(pairs).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    return batch_of(mapped(rows, [](SequencePair const& pair) { return &pair; }));
  }

  /// The line of the held-out target's file.
  Original original(Index row) const override {
    if (row < 0 || row >= std::ssize(held_out_.lines)) return {};
    return {.reference = at(held_out_.lines, row).target};
  }

 private:
  /// `beside`: the text of the split that is not held out; `left_out`: training pairs that were.
  void state(ParallelText const& beside, std::size_t left_out) {
    auto& about = facts_.description;
    about = {{"vocabulary", vocabulary()}, {"source_vocabulary", facts_.source_tokenizer->vocabulary()}};
    std::pair<std::string, ParallelText const*> const texts[]{
        {"training", &train_}, {held_out_name_, &held_out_}, {held_out_name_ == "test" ? "validation" : "test", &beside}};
    for (auto const& [name, text] : texts) {
      if (text->pairs.empty()) continue;
      for (auto const& [side, file] : {std::pair("source", &text->source), std::pair("target", &text->target)}) {
        facts_.files[fmt::format("{}.{}", name, side)] = *file;
        nlohmann::json const read{{"file", file->file}, {"sha256", file->sha256}};
        if (text == &beside)
          about["beside"].push_back(read);
        else
          about[name][side] = read;
      }
      if (text != &beside) about[name]["pairs"] = text->pairs.size();
    }
    if (settings_.longest) about["training"]["left_out"] = left_out;
    if (settings_.tokens) about["training"]["batch"] = {{"tokens", *settings_.tokens}, {"per_epoch", batches_->per_epoch(0)}};
    facts_.ngrams = std::async(std::launch::deferred, [this] {
      if (held_out_.pairs.empty()) return std::vector<double>();
      return witten_bell(target_text(train_.pairs), target_text(held_out_.pairs), vocabulary(), 6, Tokenizer::eos);
    });
  }

  ParallelSettings settings_;
  std::string held_out_name_;
  ParallelText train_, held_out_;
  std::optional<PairBatches> batches_;
};

Declared<DataKind> const parallel_data{data_kind("parallel", "sentences and their translations in two parallel files, tokenized into words",
                                                 open_as<ParallelSettings, ParallelDataset>, DataParts::validation_and_test)};

}  // namespace
}  // namespace heed
