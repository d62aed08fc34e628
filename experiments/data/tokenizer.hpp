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
/// What stands between ASCII blanks and line ends, as views into the text.
std::vector<std::string_view> words_of(std::string_view text);

/// Text to token ids and back, without loss but for words that a vocabulary of words does not have.
class Tokenizer {
 public:
  /// The first tokens of words(): "<pad>", "<bos>", "<eos>", "<unk>".
  static constexpr std::int32_t pad = 0, bos = 1, eos = 2, unknown = 3, marks = 4;

  /// Whether a word is the name of one of them.
  static bool is_mark(std::string_view word);

  /// One token a code point: the vocabulary is the code points of `text`, sorted. Throws Error if it is not UTF-8.
  static Tokenizer characters(std::string_view text);
  /// One token a byte: the vocabulary is the 256 bytes.
  static Tokenizer bytes();
  /// One token a word, sentences on lines: token 0 ends a sentence and stands before the first, token w + 1 is words[w] (sorted).
  static Tokenizer sentences(std::vector<std::string> words);
  /// One token a word, any other word <unk>: the four marks, then words[w] (sorted) as token w + 4. A text begins with <bos> and is over
  /// with <eos>. Throws Error for words that are not sorted, stand twice, are empty or a mark's name.
  static Tokenizer words(std::vector<std::string> words);

  std::int64_t vocabulary() const;
  /// Throws Error naming the first character or word that is not in the vocabulary (of words(): none is refused, <bos> is in front).
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// Throws Error for an id outside the vocabulary. Bytes that form no UTF-8 come out as they are.
  std::string decode(std::vector<std::int64_t> const& tokens) const;
  /// The token after which a text is over; nothing if texts have no end.
  std::optional<std::int64_t> end() const;
  /// The token that stands before a text; nothing if none does.
  std::optional<std::int64_t> begin() const;
  /// What a token is called that stands for no text ("<eos>"); nothing for one that does.
  std::optional<std::string> mark(std::int64_t token) const;

  /// All of it as JSON text, for restore_tokenizer().
  std::string json() const;

 private:
  enum class Kind { characters, bytes, sentences, words };
  Kind kind_ = Kind::characters;
  std::u32string characters_;
  std::vector<std::int32_t> numbers_;  ///< of each code point up to the greatest; −1: not in the vocabulary
  std::vector<std::string> words_;
};

/// The tokenizer that json() described: of a model whose data are elsewhere. Throws Error if the text describes none.
Tokenizer restore_tokenizer(std::string const& json);

}  // namespace heed
