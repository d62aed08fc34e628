#include "experiments/data/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/text/utf8.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

/// Calls f(code point) for each of UTF-8 text. Throws Error as from_utf8.
template <class F>
void each_character(std::string_view text, F f) {
  for (std::size_t i = 0; i < text.size();) {
    auto const start = i;
    if (auto const byte = static_cast<unsigned char>(text[i]); byte < 0x80) {
      f(char32_t{byte});
      ++i;
      continue;
    }
    auto const character = decode_utf8(text, i);
    if (!character) throw Error(fmt::format("not UTF-8 at byte {} (0x{:02X})", start, static_cast<unsigned char>(text[start])));
    f(*character);
  }
}

}  // namespace

std::u32string from_utf8(std::string_view text) {
  std::u32string characters;
  characters.reserve(text.size());
  each_character(text, [&](char32_t c) { characters.push_back(c); });
  return characters;
}

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

Tokenizer Tokenizer::characters(std::string_view text) {
  Tokenizer tokenizer;
  auto& numbers = tokenizer.numbers_;
  each_character(text, [&](char32_t c) {
    if (c >= numbers.size()) numbers.resize(c + 1, -1);
    numbers[c] = 0;
  });
  for (char32_t c = 0; c < numbers.size(); ++c) {
    if (numbers[c] < 0) continue;
    numbers[c] = static_cast<std::int32_t>(tokenizer.characters_.size());
    tokenizer.characters_.push_back(c);
  }
  return tokenizer;
}

Tokenizer Tokenizer::bytes() {
  Tokenizer tokenizer;
  tokenizer.kind_ = Kind::bytes;
  return tokenizer;
}

Tokenizer Tokenizer::sentences(std::vector<std::string> words) {
  Tokenizer tokenizer;
  tokenizer.kind_ = Kind::sentences;
  tokenizer.words_ = std::move(words);
  return tokenizer;
}

namespace {

constexpr std::array<std::string_view, Tokenizer::marks> mark_names{"<pad>", "<bos>", "<eos>", "<unk>"};

}  // namespace

bool Tokenizer::is_mark(std::string_view word) { return std::ranges::find(mark_names, word) != mark_names.end(); }

Tokenizer Tokenizer::words(std::vector<std::string> words) {
  if (std::ranges::adjacent_find(words, std::ranges::greater_equal{}) != words.end()) throw Error("its words are not sorted");
  for (auto const& word : words)
    if (word.empty() || is_mark(word)) throw Error(fmt::format("'{}' is no word", word));
  Tokenizer tokenizer;
  tokenizer.kind_ = Kind::words;
  tokenizer.words_ = std::move(words);
  return tokenizer;
}

std::optional<std::int64_t> Tokenizer::end() const {
  return kind_ == Kind::sentences ? std::optional<std::int64_t>(0) : kind_ == Kind::words ? std::optional<std::int64_t>(eos) : std::nullopt;
}

std::optional<std::int64_t> Tokenizer::begin() const { return kind_ == Kind::words ? std::optional<std::int64_t>(bos) : end(); }

std::optional<std::string> Tokenizer::mark(std::int64_t token) const {
  if (token == end()) return std::string(mark_names[eos]);
  if (kind_ != Kind::words || token < 0 || token >= unknown) return std::nullopt;
  return std::string(mark_names[static_cast<std::size_t>(token)]);
}

std::int64_t Tokenizer::vocabulary() const {
  switch (kind_) {
    case Kind::words:
      return static_cast<std::int64_t>(words_.size() + mark_names.size());
    case Kind::bytes:
      return 256;
    case Kind::sentences:
      return static_cast<std::int64_t>(words_.size()) + 1;
    case Kind::characters:
      break;
  }
  return static_cast<std::int64_t>(characters_.size());
}

namespace {

std::vector<std::int32_t> encode_sentences(std::string_view text, std::vector<std::string> const& words) {
  std::vector<std::int32_t> tokens;
  std::istringstream lines(std::string(text) + "\n");
  for (std::string line; std::getline(lines, line);) {
    tokens.push_back(0);
    std::istringstream stream(line);
    for (std::string word; stream >> word;) {
      auto const found = std::lower_bound(words.begin(), words.end(), word);
      if (found == words.end() || *found != word)
        throw Error(fmt::format("'{}' is not one of the grammar's {} words{}", word, words.size(), did_you_mean(word, words)));
      tokens.push_back(static_cast<std::int32_t>(found - words.begin()) + 1);
    }
  }
  return tokens;
}

std::vector<std::int32_t> encode_words(std::string_view text, std::vector<std::string> const& words) {
  std::vector<std::int32_t> tokens{Tokenizer::bos};
  for (auto const word : words_of(text)) {
    auto const found = std::lower_bound(words.begin(), words.end(), word);
    bool const known = found != words.end() && *found == word;
    tokens.push_back(known ? static_cast<std::int32_t>(found - words.begin() + Tokenizer::marks) : Tokenizer::unknown);
  }
  return tokens;
}

std::string decode_words(std::vector<std::int64_t> const& tokens, std::vector<std::string> const& words) {
  std::string text;
  for (auto const token : tokens) {
    if (token == Tokenizer::eos) text += '\n';
    if (token < Tokenizer::unknown) continue;
    if (!text.empty() && text.back() != '\n') text += ' ';
    text += token == Tokenizer::unknown ? mark_names[Tokenizer::unknown]
                                        : std::string_view(words[static_cast<std::size_t>(token - Tokenizer::marks)]);
  }
  return text;
}

std::string decode_sentences(std::vector<std::int64_t> const& tokens, std::vector<std::string> const& words) {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == 0) {
      if (i > 0) text += '\n';
      continue;
    }
    if (!text.empty() && text.back() != '\n') text += ' ';
    text += words[static_cast<std::size_t>(tokens[i] - 1)];
  }
  return text;
}

}  // namespace

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  if (kind_ == Kind::sentences) return encode_sentences(text, words_);
  if (kind_ == Kind::words) return encode_words(text, words_);
  std::vector<std::int32_t> tokens(text.size());  // no more than there are bytes
  if (kind_ == Kind::bytes) {
    std::ranges::transform(text, tokens.begin(), [](char c) { return static_cast<unsigned char>(c); });
    return tokens;
  }
  auto end = tokens.begin();
  each_character(text, [&, numbers = std::span(numbers_)](char32_t c) {
    auto const number = c < numbers.size() ? numbers[c] : -1;
    if (number < 0) {
      auto const shown = is_control(c) ? std::string() : fmt::format("'{}' ", to_utf8(c));
      throw Error(
          fmt::format("character {}(U+{:04X}) is not in the vocabulary of {} characters", shown, static_cast<unsigned>(c), vocabulary()));
    }
    *end++ = number;
  });
  tokens.erase(end, tokens.end());
  return tokens;
}

std::string Tokenizer::decode(std::vector<std::int64_t> const& tokens) const {
  for (auto token : tokens)
    if (token < 0 || token >= vocabulary()) throw Error(fmt::format("token {} is outside the vocabulary of {}", token, vocabulary()));
  if (kind_ == Kind::sentences) return decode_sentences(tokens, words_);
  if (kind_ == Kind::words) return decode_words(tokens, words_);
  std::string text;
  for (auto token : tokens) {
    auto const id = static_cast<std::size_t>(token);
    if (kind_ == Kind::bytes)
      text.push_back(static_cast<char>(static_cast<unsigned char>(id)));
    else
      text += to_utf8(characters_[id]);
  }
  return text;
}

std::string Tokenizer::json() const {
  if (kind_ == Kind::bytes) return R"({"kind":"byte"})";
  if (kind_ == Kind::sentences) return json_text(nlohmann::json{{"kind", "sentences"}, {"words", words_}});
  if (kind_ == Kind::words) return json_text(nlohmann::json{{"kind", "words"}, {"words", words_}});
  std::string all;
  for (auto c : characters_) all += to_utf8(c);
  return json_text(nlohmann::json{{"kind", "char"}, {"characters", all}});
}

Tokenizer restore_tokenizer(std::string const& json) {
  try {
    auto const saved = parse_json<nlohmann::json>(json, "the text");
    auto const& kind = saved.at("kind").get_ref<std::string const&>();
    if (kind == "char") return Tokenizer::characters(saved.at("characters").get_ref<std::string const&>());
    if (kind == "byte") return Tokenizer::bytes();
    if (kind == "sentences") {
      auto words = saved.at("words").get<std::vector<std::string>>();
      if (!std::is_sorted(words.begin(), words.end())) throw Error("its words are not sorted");
      return Tokenizer::sentences(std::move(words));
    }
    if (kind == "words") return Tokenizer::words(saved.at("words").get<std::vector<std::string>>());
    throw Error(fmt::format("there is no kind '{}'", kind));
  } catch (nlohmann::json::exception const& error) {
    throw Error(fmt::format("not a tokenizer: {}", error.what()));
  } catch (Error const& error) {
    throw Error(fmt::format("not a tokenizer: {}", error.what()));
  }
}

}  // namespace heed
