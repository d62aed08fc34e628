#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace heed
