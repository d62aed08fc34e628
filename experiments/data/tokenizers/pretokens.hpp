#pragma once

#include <cstddef>
#include <string_view>

namespace heed {

/// Where the first pretoken of a text that is not empty ends: what GPT-2's pattern matches there (Radford et al. 2019),
///
///     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///
/// with Unicode's letters, numbers and white space. A byte that is not part of UTF-8 counts as a character that is none of them, so that
/// every text is split into pretokens without loss.
std::size_t pretoken_end(std::string_view text);

}  // namespace heed
