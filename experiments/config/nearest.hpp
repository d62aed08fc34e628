#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The candidate closest to a misspelt word, or "" if none is close: by the number of inserted, deleted, changed or swapped characters, at
/// most a third of the word's (but at least one); case, `-` and `_` are ignored. Of dotted names, parts shared at the beginning or end do
/// not count. Otherwise, for words of three or more characters, the shortest dotted candidate that ends in the word, or in which the word
/// ends; otherwise the only candidate that begins with the word.
std::string nearest(std::string_view word, std::vector<std::string> const& candidates);

/// "; did you mean 'layers'?", or "" if none is near.
std::string did_you_mean(std::string_view word, std::vector<std::string> const& candidates);

}  // namespace heed
