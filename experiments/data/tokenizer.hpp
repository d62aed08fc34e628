#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The code points of UTF-8 text. Throws Error naming the offset of the first byte that is not UTF-8 (overlong forms, surrogates and
/// code points beyond U+10FFFF are not).
std::u32string from_utf8(std::string_view text);
/// UTF-8 of one code point.
std::string to_utf8(char32_t character);

/// Text to token ids and back, without loss.
class Tokenizer {
 public:
  /// One token a code point: the vocabulary is the code points of `text`, sorted. Throws Error if it is not UTF-8.
  static Tokenizer characters(std::string_view text);
  /// One token a byte: the vocabulary is the 256 bytes.
  static Tokenizer bytes();
  /// One token a word, sentences on lines: token 0 ends a sentence and stands before the first, token w + 1 is words[w] (sorted).
  static Tokenizer sentences(std::vector<std::string> words);

  std::int64_t vocabulary() const;
  /// Throws Error naming the first character or word that is not in the vocabulary.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// Throws Error for an id outside the vocabulary. Bytes that form no UTF-8 come out as they are.
  std::string decode(std::vector<std::int64_t> const& tokens) const;
  /// The token after which a text is over; nothing if texts have no end.
  std::optional<std::int64_t> end() const { return kind_ == Kind::sentences ? std::optional<std::int64_t>(0) : std::nullopt; }

  /// All of it as JSON text, for restore_tokenizer().
  std::string json() const;

 private:
  enum class Kind { characters, bytes, sentences };
  Kind kind_ = Kind::characters;
  std::u32string characters_;
  std::vector<std::int32_t> numbers_;  ///< of each code point up to the greatest; −1: not in the vocabulary
  std::vector<std::string> words_;
};

/// The tokenizer that json() described: of a model whose data are elsewhere. Throws Error if the text describes none.
Tokenizer restore_tokenizer(std::string const& json);

}  // namespace heed
