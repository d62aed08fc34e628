#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

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
        auto const found = std::ranges::lower_bound(words_, word);
        if (found == words_.end() || *found != word)
          throw Error(fmt::format("'{}' is not one of the grammar's {} words{}", word, words_.size(), did_you_mean(word, words_)));
        tokens.push_back(static_cast<std::int32_t>(found - words_.begin()) + 1);
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

std::shared_ptr<Tokenizer const> sentence_tokenizer(std::vector<std::string> words) {
  return std::make_shared<SentenceTokenizer>(std::move(words));
}

}  // namespace heed
