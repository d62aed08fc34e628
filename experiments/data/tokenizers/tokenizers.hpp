#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/data/tokenizer.hpp"

namespace heed {

/// One token a byte: the vocabulary is the 256 bytes.
std::shared_ptr<Tokenizer const> byte_tokenizer();

/// One token a code point: the vocabulary is the code points of `text`, sorted. Throws Error if it is not UTF-8.
std::shared_ptr<Tokenizer const> character_tokenizer(std::string_view text);

/// The code points of UTF-8 text. Throws Error naming the offset of the first byte that is not UTF-8 (overlong forms, surrogates and
/// code points beyond U+10FFFF are not).
std::u32string from_utf8(std::string_view text);

/// One token a word, sentences on lines: token 0 ends a sentence and stands before the first, token w + 1 is words[w] (sorted). Throws
/// Error for words that are not sorted.
std::shared_ptr<Tokenizer const> sentence_tokenizer(std::vector<std::string> words);

/// What stands between ASCII blanks and line ends, as views into the text.
std::vector<std::string_view> words_of(std::string_view text);

/// Whether a word is the name of one of a vocabulary's marks, "<pad>", "<bos>", "<eos>" or "<unk>".
bool is_mark(std::string_view word);

/// One token a word, any other word <unk>: the four marks, then words[w] (sorted) as token w + 4. A text begins with <bos> and is over
/// with <eos>. Throws Error for words that are not sorted, stand twice, are empty or a mark's name.
std::shared_ptr<Tokenizer const> word_tokenizer(std::vector<std::string> words);

/// How often each word stands in a text.
using WordCounts = std::map<std::string, std::int64_t, std::less<>>;
void count_words(WordCounts& counts, std::string_view text);
/// The words that stand `least` times or more, sorted, without names of marks. Throws Error that begins with `key` if there are none.
std::vector<std::string> frequent_words(WordCounts const& counts, std::int64_t least, std::string_view key);

}  // namespace heed
