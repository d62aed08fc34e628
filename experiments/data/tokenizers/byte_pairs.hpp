#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "experiments/data/files.hpp"

namespace heed {

/// Where the first pretoken of a text that is not empty ends: what GPT-2's pattern matches there (Radford et al. 2019),
///
///     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///
/// with Unicode's letters, numbers and white space. A byte that is not part of UTF-8 counts as a character that is none of them, so that
/// every text is split into pretokens without loss.
std::size_t pretoken_end(std::string_view text);

/// A byte's letter in the files of byte-pair vocabularies (GPT-2's): the printable characters of Latin-1 stand for themselves, the other
/// 68 bytes are U+0100 and on: "Ġ" is a blank, "Ċ" a new line.
std::array<std::string, 256> const& byte_letters();
/// The bytes, in the order of their letters: those that stand for themselves are first. Tokens 0 … 255 of GPT-2.
std::array<unsigned char, 256> const& bytes_by_letter();
/// The bytes of a token that is written in letters; nothing if something else stands in it.
std::optional<std::string> bytes_of_letters(std::string_view letters);
/// A token's bytes in letters.
std::string letters_of_bytes(std::string_view bytes);

/// A vocabulary of byte pairs (Sennrich et al. 2016; over bytes, Radford et al. 2019): tokens that are bytes, tokens that are made of two
/// others by a merge, and special ones, which stand for no text.
class BytePairs {
 public:
  struct Merge {
    std::int32_t left = 0, right = 0;
    bool operator==(Merge const&) const = default;
  };
  /// Says where a merge was written, by its number: "merges.txt:3".
  using LineName = std::function<std::string(std::size_t)>;

  /// `tokens`: letters of each, or the text of a special one (<…> or […], made by no merge); `merges`: "Ġ t", the first to be applied
  /// first. Throws Error, its message beginning with the place of a merge or the name of the tokens, if a byte has no token, a token stands
  /// twice or is made by no merge, a merge is not two tokens, or what it makes is no token.
  BytePairs(std::vector<std::string> const& tokens, std::vector<std::string> const& merges, std::string const& name_of_tokens,
            LineName const& place);
  /// The 256 bytes, and then what each merge makes, if there is no such token yet, and the special tokens.
  BytePairs(std::vector<Merge> merges, std::vector<std::string> const& special);

  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  /// A token's bytes; of a special one its text.
  std::string const& bytes(std::int32_t token) const { return tokens_[static_cast<std::size_t>(token)]; }
  bool is_special(std::int32_t token) const;
  /// The special token of this text.
  std::optional<std::int32_t> find_special(std::string_view text) const;
  /// As the constructor takes them.
  std::vector<std::string> tokens() const;
  std::vector<std::string> merges() const;

  /// The tokens of any bytes: in each pretoken (pretoken_end()) the earliest merge that applies is made wherever it does, from left to
  /// right, until none applies. `special`: where the text of a special token stands, it is that token, the longest first; otherwise text
  /// like any.
  std::vector<std::int32_t> encode(std::string_view text, bool special = false) const;

 private:
  struct MergedToken {
    std::int32_t rank, token;
  };
  struct Slice {
    std::size_t begin, size;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  static std::uint64_t key(Merge const& pair) {
    return static_cast<std::uint64_t>(pair.left) << 32 | static_cast<std::uint32_t>(pair.right);
  }
  void encode_text(std::string_view text, std::vector<std::int32_t>& out) const;
  void encode_pretoken(std::string_view pretoken, std::vector<std::int32_t>& out) const;

  std::vector<std::string> tokens_;
  std::vector<std::int32_t> special_;  ///< sorted
  std::vector<Merge> merges_;
  std::array<std::int32_t, 256> of_byte_{};
  std::unordered_map<std::uint64_t, MergedToken> made_;

  // What became of the pretokens so far, up to a number of them: texts consist of the same ones.
  mutable std::mutex using_known_;
  mutable std::unordered_map<std::string, Slice, Hash, std::equal_to<>> known_;
  mutable std::vector<std::int32_t> known_tokens_;
};

/// The vocabulary in a folder: vocab.json and merges.txt, as Hugging Face's tokenizers write them, or OpenAI's encoder.json and vocab.bpe.
/// The one maps tokens to numbers 0 … n − 1, the other has a merge a line, perhaps behind a first line "#version: …". `files` (may be null)
/// gets what was read. Throws FileError that begins with the file, and the line where there is one.
std::shared_ptr<BytePairs const> read_byte_pairs(std::filesystem::path const& folder, ReadFiles* files = nullptr);

/// Writes a folder's vocab.json and merges.txt; the folder is made if there is none. Throws Error.
void write_byte_pairs(BytePairs const& vocabulary, std::filesystem::path const& folder);

/// The token that ends a text in vocabularies that are trained here, GPT-2's.
constexpr std::string_view end_of_text = "<|endoftext|>";
/// The smallest vocabulary: the 256 bytes and that token.
constexpr std::int64_t least_byte_pairs = 257;

/// A vocabulary of `size` tokens, learnt from a text (Sennrich et al. 2016, algorithm 1; of pretokens of bytes, Radford et al. 2019): the
/// 256 bytes, then again and again the two neighbouring tokens within pretokens that stand beside each other most often, at last the token
/// that ends a text. Of pairs that stand equally often, the one whose left token has the lower number is merged first, then the one whose
/// right token has. A pair that stands once is not merged: of a short text the vocabulary is smaller. `told` hears how many tokens there
/// are.
std::shared_ptr<BytePairs const> train_byte_pairs(std::string_view text, std::int64_t size,
                                                  std::function<void(std::int64_t)> const& told = {});

}  // namespace heed
