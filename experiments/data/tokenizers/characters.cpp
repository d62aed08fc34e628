#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/json.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

class ByteTokenizer : public Tokenizer {
 public:
  Index vocabulary() const override { return 256; }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    return mapped(text, [](char c) { return std::int32_t{static_cast<unsigned char>(c)}; });
  }

  std::string json() const override { return R"({"kind":"byte"})"; }

 private:
  std::string text_of(std::vector<Index> const& tokens) const override {
    std::string text;
    for (auto const token : tokens) text.push_back(static_cast<char>(static_cast<unsigned char>(token)));
    return text;
  }
};

Declared<TokenizerKind> const bytes_tokenizer{{.name = "byte",
                                               .help = "the 256 bytes",
                                               .settings = [] { return std::make_shared<Settings>(); },
                                               .make = [](Settings const&, TokenizerKind::Source const&) { return byte_tokenizer(); },
                                               .restore = [](nlohmann::json const&) { return byte_tokenizer(); },
                                               .cuts_characters = true}};

/// Calls f(code point) for each of UTF-8 text. Throws Error naming the offset of the first invalid byte (overlong forms, surrogates and
/// code points beyond U+10FFFF included).
template <class F>
void each_character(std::string_view text, F f) {
  for (std::size_t i = 0; i < text.size();) {
    auto const start = i;
    auto const character = decode_utf8(text, i);
    if (!character) throw Error(fmt::format("not UTF-8 at byte {} (0x{:02X})", start, static_cast<unsigned char>(text[start])));
    f(*character);
  }
}

class CharacterTokenizer : public Tokenizer {
 public:
  explicit CharacterTokenizer(std::string_view text) {
    each_character(text, [&](char32_t c) {
      if (c >= numbers_.size()) numbers_.resize(c + 1, -1);
      numbers_[c] = 0;
    });
    for (char32_t c = 0; c < numbers_.size(); ++c) {
      if (numbers_[c] < 0) continue;
      numbers_[c] = static_cast<std::int32_t>(characters_.size());
      characters_.push_back(c);
    }
  }

  Index vocabulary() const override { return static_cast<Index>(characters_.size()); }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> tokens;
    tokens.reserve(text.size());  // no more than there are bytes
    each_character(text, [&](char32_t c) {
      auto const number = c < numbers_.size() ? numbers_[c] : -1;
      if (number < 0) {
        auto const shown = is_control(c) ? std::string() : fmt::format("'{}' ", to_utf8(c));
        throw Error(
            fmt::format("character {}(U+{:04X}) is not in the vocabulary of {} characters", shown, static_cast<unsigned>(c), vocabulary()));
      }
      tokens.push_back(number);
    });
    return tokens;
  }

  std::string json() const override {
    std::string all;
    for (auto const c : characters_) all += to_utf8(c);
    return json_text(nlohmann::json{{"kind", "char"}, {"characters", all}});
  }

 private:
  std::string text_of(std::vector<Index> const& tokens) const override {
    std::string text;
    for (auto const token : tokens) text += to_utf8(at(characters_, token));
    return text;
  }

  std::u32string characters_;
  std::vector<std::int32_t> numbers_;  ///< of each code point up to the greatest; −1: not in the vocabulary
};

Declared<TokenizerKind> const characters_tokenizer{
    {.name = "char",
     .help = "the Unicode code points of the text",
     .settings = [] { return std::make_shared<Settings>(); },
     .make = [](Settings const&, TokenizerKind::Source const& source) { return character_tokenizer(source.all); },
     .restore = [](nlohmann::json const& saved) { return character_tokenizer(saved.at("characters").get_ref<std::string const&>()); }}};

}  // namespace

std::shared_ptr<Tokenizer const> byte_tokenizer() { return std::make_shared<ByteTokenizer>(); }

std::shared_ptr<Tokenizer const> character_tokenizer(std::string_view text) { return std::make_shared<CharacterTokenizer>(text); }

}  // namespace heed
