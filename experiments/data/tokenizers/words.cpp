#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

constexpr std::array<std::string_view, Tokenizer::marks> mark_names{"<pad>", "<bos>", "<eos>", "<unk>"};

/// The number of a word in a sorted list; nothing if it is not there.
std::optional<std::int32_t> number_of(std::vector<std::string> const& words, std::string_view word) {
  auto const found = std::ranges::lower_bound(words, word);
  if (found == words.end() || *found != word) return std::nullopt;
  return static_cast<std::int32_t>(found - words.begin());
}

class WordTokenizer : public Tokenizer {
 public:
  explicit WordTokenizer(std::vector<std::string> words) : words_(std::move(words)) {
    if (std::ranges::adjacent_find(words_, std::ranges::greater_equal{}) != words_.end()) throw Error("its words are not sorted");
    for (auto const& word : words_)
      if (word.empty() || is_mark(word)) throw Error(fmt::format("'{}' is no word", word));
  }

  Index vocabulary() const override { return std::ssize(words_) + marks; }
  std::optional<Index> end() const override { return eos; }
  std::optional<Index> begin() const override { return bos; }
  std::optional<std::string> mark(Index token) const override {
    if (token < 0 || token >= unknown) return std::nullopt;
    return std::string(at(mark_names, token));
  }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> tokens{bos};
    for (auto const word : words_of(text)) tokens.push_back(token_of(word));
    return tokens;
  }

  std::vector<std::size_t> starts(std::string_view text, std::vector<std::int32_t> const&) const override {
    auto starts = mapped(words_of(text), [&](std::string_view word) { return static_cast<std::size_t>(word.data() - text.data()); });
    starts.push_back(text.size());
    return starts;
  }

  Index unknown_words(std::string_view text) const override {
    return std::ranges::count_if(words_of(text),
                                 [&](std::string_view word) { return token_of(word) == unknown && word != at(mark_names, unknown); });
  }

  std::string json() const override { return json_text(nlohmann::json{{"kind", "words"}, {"words", words_}}); }

 private:
  std::int32_t token_of(std::string_view word) const {
    auto const number = number_of(words_, word);
    return number ? *number + marks : unknown;
  }

  std::string text_of(std::vector<Index> const& tokens) const override {
    std::string text;
    for (auto const token : tokens) {
      if (token == eos) text += '\n';
      if (token < unknown) continue;
      if (!text.empty() && text.back() != '\n') text += ' ';
      text += token == unknown ? mark_names[unknown] : std::string_view(at(words_, token - marks));
    }
    return text;
  }

  std::vector<std::string> words_;
};

struct WordSettings : Settings {
  Index min_count = 1;
  std::vector<Field> fields() override {
    return {field(&min_count, "min_count", "words with fewer occurrences in the training text are <unk>").in(1, 1e9)};
  }
};

std::shared_ptr<Tokenizer const> make_words(Settings const& settings, TokenizerKind::Source const& source) {
  WordCounts counts;
  count_words(counts, source.training);
  return word_tokenizer(frequent_words(counts, dynamic_cast<WordSettings const&>(settings).min_count, "data.tokenizer.min_count"));
}

Declared<TokenizerKind> const words_tokenizer{
    {.name = "words",
     .help = "words of the training text, separated by blanks; others are <unk>",
     .settings = [] { return std::make_shared<WordSettings>(); },
     .make = make_words,
     .restore = [](nlohmann::json const& saved) { return word_tokenizer(saved.at("words").get<std::vector<std::string>>()); }}};

class SentenceTokenizer : public Tokenizer {
 public:
  explicit SentenceTokenizer(std::vector<std::string> words) : words_(std::move(words)) {
    if (!std::ranges::is_sorted(words_)) throw Error("its words are not sorted");
  }

  Index vocabulary() const override { return std::ssize(words_) + 1; }
  std::optional<Index> end() const override { return 0; }
  std::optional<Index> begin() const override { return 0; }
  std::optional<std::string> mark(Index token) const override { return token == 0 ? std::optional<std::string>("<eos>") : std::nullopt; }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> tokens;
    for (std::size_t begin = 0; begin <= text.size();) {
      tokens.push_back(0);
      for (auto const word : words_of(next_line(text, begin))) {
        auto const number = number_of(words_, word);
        if (!number)
          throw Error(fmt::format("'{}' is not one of the grammar's {} words{}", word, words_.size(), did_you_mean(word, words_)));
        tokens.push_back(*number + 1);
      }
    }
    return tokens;
  }

  std::string json() const override { return json_text(nlohmann::json{{"kind", "sentences"}, {"words", words_}}); }

 private:
  std::string text_of(std::vector<Index> const& tokens) const override {
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] == 0) {
        if (i > 0) text += '\n';
        continue;
      }
      if (!text.empty() && text.back() != '\n') text += ' ';
      text += at(words_, tokens[i] - 1);
    }
    return text;
  }

  std::vector<std::string> words_;
};

Declared<TokenizerKind> const sentences_tokenizer{
    {.name = "sentences", .help = "the words of a grammar, sentences on lines", .restore = [](nlohmann::json const& saved) {
       return sentence_tokenizer(saved.at("words").get<std::vector<std::string>>());
     }}};

}  // namespace

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view blank = " \t\n\v\f\r";
  std::vector<std::string_view> words;
  for (auto begin = text.find_first_not_of(blank); begin != text.npos;) {
    auto const end = std::min(text.find_first_of(blank, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(blank, end);
  }
  return words;
}

bool is_mark(std::string_view word) { return std::ranges::find(mark_names, word) != mark_names.end(); }

std::shared_ptr<Tokenizer const> word_tokenizer(std::vector<std::string> words) {
  return std::make_shared<WordTokenizer>(std::move(words));
}

std::shared_ptr<Tokenizer const> sentence_tokenizer(std::vector<std::string> words) {
  return std::make_shared<SentenceTokenizer>(std::move(words));
}

void count_words(WordCounts& counts, std::string_view text) {
  for (auto const word : words_of(text)) ++counts[std::string(word)];
}

std::vector<std::string> frequent_words(WordCounts const& counts, Index min_count, std::string_view key) {
  std::vector<std::string> words;
  Index max_times = 0;
  for (auto const& [word, times] : counts) {
    if (is_mark(word)) continue;
    max_times = std::max(max_times, times);
    if (times >= min_count) words.push_back(word);
  }
  if (words.empty())
    throw Error(fmt::format("{}: no word occurs {} times or more in the training text; the most frequent one occurs {} times", key,
                            min_count, max_times));
  return words;
}

}  // namespace heed
