#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "experiments/data/files.hpp"
#include "experiments/data/tokenizer.hpp"

namespace heed {

/// One token per byte: the vocabulary is the 256 bytes.
std::shared_ptr<Tokenizer const> byte_tokenizer();

/// One token per code point: the vocabulary is the sorted code points of `text`. Throws Error if it is not UTF-8.
std::shared_ptr<Tokenizer const> character_tokenizer(std::string_view text);

/// One token per word, sentences on lines: token 0 ends a sentence and precedes the first, token w + 1 is words[w] (sorted). Throws Error
/// for words that are not sorted.
std::shared_ptr<Tokenizer const> sentence_tokenizer(std::vector<std::string> words);

/// The words between ASCII blanks and line ends, as views into the text.
std::vector<std::string_view> words_of(std::string_view text);

/// Whether a word is the name of a mark: "<pad>", "<bos>", "<eos>" or "<unk>".
bool is_mark(std::string_view word);

/// One token per word, any other word is <unk>: the four marks, then words[w] (sorted) as token w + 4. A text begins with <bos> and ends
/// with <eos>. Throws Error for words that are not sorted, repeated, empty or a mark's name.
std::shared_ptr<Tokenizer const> word_tokenizer(std::vector<std::string> words);

/// How often each word occurs in a text.
using WordCounts = std::map<std::string, Index>;
void count_words(WordCounts& counts, std::string_view text);
/// The words that occur at least `min_count` times, sorted, without marks' names. Throws Error that begins with `key` if there are none.
std::vector<std::string> frequent_words(WordCounts const& counts, Index min_count, std::string_view key);

/// The end of the first pretoken of a non-empty text: the match of GPT-2's pattern (Radford et al. 2019),
///
///     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///
/// with Unicode's letters, numbers and white space. A byte that is not part of UTF-8 counts as a character of none of these classes, so
/// that every text is split without loss.
std::size_t pretoken_end(std::string_view text);

/// The letter that represents a byte in byte-pair vocabularies (GPT-2's): printable characters of Latin-1 represent themselves, the other
/// 68 bytes are U+0100 and on: "Ġ" is a blank, "Ċ" a line feed.
std::array<std::string, 256> const& byte_letters();
/// The bytes in the order of their letters, those that represent themselves first: tokens 0 … 255 of GPT-2.
std::array<unsigned char, 256> const& bytes_by_letter();
/// A token's bytes in letters.
std::string letters_of_bytes(std::string_view bytes);

/// A vocabulary of byte pairs (Sennrich et al. 2016; over bytes, Radford et al. 2019): single bytes, tokens merged from two others, and
/// special tokens, which stand for no text. <|endoftext|>, or else </s>, ends a text; in a text it is ordinary text.
class BytePairs : public Tokenizer {
 public:
  struct Merge {
    std::int32_t left = 0, right = 0;
    std::uint64_t key() const { return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right); }
  };
  /// The location where a merge was written, by its number: "merges.txt:3".
  using LineName = std::function<std::string(std::size_t)>;

  /// `tokens`: each in letters, or the text of a special one (<…> or […], not made by a merge); `merges`: "Ġ t", in order of application.
  /// Throws Error beginning with the location of a merge or the token's name if a byte has no token, a token is repeated or made by no
  /// merge, a merge is not of two tokens, or its result is not a token.
  BytePairs(
      std::vector<std::string> const& tokens, std::vector<std::string> const& merges, std::string const& name_of_tokens = "its tokens",
      LineName const& location = [](std::size_t merge) { return "its merge " + std::to_string(merge); });

  Index vocabulary() const override { return std::ssize(tokens_); }
  std::optional<Index> end() const override;
  std::optional<std::string> mark(Index token) const override;
  bool slow() const override { return true; }
  /// {"kind": "bpe", "merges": ["Ġ t", …], "tokens": ["!", …]}
  std::string json() const override;
  /// A token's bytes; a special token's text.
  std::string const& bytes(Index token) const { return at(tokens_, token); }
  /// The special token of this text.
  std::optional<std::int32_t> find_special(std::string_view text) const;
  /// In the constructor's format.
  std::vector<std::string> tokens() const;
  std::vector<std::string> merges() const;

  /// The tokens of any bytes: within each pretoken (pretoken_end()) the earliest applicable merge is applied everywhere, from left to
  /// right, until none applies. `special`: the text of a special token becomes that token, the longest first; otherwise it is ordinary
  /// text.
  std::vector<std::int32_t> encode(std::string_view text, bool special) const;
  std::vector<std::int32_t> encode(std::string_view text) const override { return encode(text, false); }

 private:
  struct MergedToken {
    std::int32_t rank, token;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::string text_of(std::vector<Index> const& tokens) const override;
  void encode_text(std::string_view text, std::vector<std::int32_t>& out) const;
  std::vector<std::int32_t> encode_pretoken(std::string_view pretoken) const;

  std::vector<std::string> tokens_;
  std::vector<std::int32_t> special_;  ///< sorted
  std::vector<Merge> merges_;
  std::array<std::int32_t, 256> of_byte_{};
  std::unordered_map<std::uint64_t, MergedToken> made_;

  // Cache of pretokens' encodings, of limited size: texts repeat them.
  mutable std::mutex using_known_;
  mutable std::unordered_map<std::string, std::vector<std::int32_t>, Hash, std::equal_to<>> known_;
};

/// Reads the vocabulary in a folder: vocab.json and merges.txt, as Hugging Face's tokenizers write them, OpenAI's encoder.json and
/// vocab.bpe, or else tokenizer.json. The first file maps tokens to ids 0 … n − 1, as added_tokens.json does with further ones, the second
/// has one merge per line, perhaps after a line "#version: …". `files` (may be null) receives what was read. Throws FileError that begins
/// with the file, and the line where there is one; also for what transformers' settings (tokenizer_config.json, special_tokens_map.json,
/// tokenizer.json) ask for beyond GPT-2's tokenizer, such as add_prefix_space, by which a text would have other tokens.
std::shared_ptr<BytePairs const> read_byte_pairs(std::filesystem::path const& folder, ReadFiles* files = nullptr);

/// Writes vocab.json and merges.txt into a folder, creating it if necessary. Throws Error.
void write_byte_pairs(BytePairs const& vocabulary, std::filesystem::path const& folder);

/// The end-of-text token of vocabularies trained here, GPT-2's.
constexpr std::string_view end_of_text = "<|endoftext|>";
/// The smallest vocabulary: the 256 bytes and the end-of-text token.
constexpr Index min_byte_pairs = 257;

/// Learns a vocabulary of `size` tokens from a text (Sennrich et al. 2016, algorithm 1; over pretokens of bytes, Radford et al. 2019): the
/// 256 bytes, then repeatedly the most frequent pair of adjacent tokens within pretokens, finally the end-of-text token. Ties are broken by
/// the lower id of the left token, then of the right one. Pairs that occur once are not merged, so that a short text gives a smaller
/// vocabulary. `progress` is called with the number of tokens so far.
std::shared_ptr<BytePairs const> train_byte_pairs(std::string_view text, Index size, std::function<void(Index)> const& progress = {});

}  // namespace heed
