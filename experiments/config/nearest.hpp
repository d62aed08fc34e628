#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The candidate that a misspelt word most likely meant, or "" if none is near: the smallest number of inserted, deleted, changed or
/// swapped characters, at most a third of the word (but one is always forgiven); upper and lower case, `-` and `_` count as equal. Of
/// dotted names the parts that both have at their beginning or end do not count. Failing that, of a word of three characters or more, the
/// shortest dotted candidate that ends in it, or in which it ends; then the one candidate that the word begins.
std::string nearest(std::string_view word, std::vector<std::string> const& candidates);

/// "; did you mean 'layers'?", or "" if none is near.
std::string did_you_mean(std::string_view word, std::vector<std::string> const& candidates);

}  // namespace heed
