#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "experiments/data/tokenizer.hpp"

namespace heed {

/// One token a code point: the vocabulary is the code points of `text`, sorted. Throws Error if it is not UTF-8.
std::shared_ptr<Tokenizer const> character_tokenizer(std::string_view text);

/// The code points of UTF-8 text. Throws Error naming the offset of the first byte that is not UTF-8 (overlong forms, surrogates and
/// code points beyond U+10FFFF are not).
std::u32string from_utf8(std::string_view text);

}  // namespace heed
