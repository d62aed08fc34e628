#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiments/data/tokenizer.hpp"

namespace heed {

/// One token a word, sentences on lines: token 0 ends a sentence and stands before the first, token w + 1 is words[w] (sorted). Throws
/// Error for words that are not sorted.
std::shared_ptr<Tokenizer const> sentence_tokenizer(std::vector<std::string> words);

}  // namespace heed
