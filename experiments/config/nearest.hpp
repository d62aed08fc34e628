#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/index.hpp"

namespace heed {

/// The names of kinds, keys or sizes.
template <class Named>
std::vector<std::string> names_of(std::vector<Named> const& all) {
  return mapped(all, &Named::name);
}

/// The candidate closest to a misspelt word, or "" if none is close: by the number of inserted, deleted, changed or swapped characters, at
/// most a third of the word's (but at least one); case, `-` and `_` are ignored. Of dotted names, parts shared at the beginning or end do
/// not count. Otherwise, for words of three or more characters, the shortest dotted candidate that ends in the word, or in which the word
/// ends; otherwise the only candidate that begins with the word.
std::string nearest(std::string_view word, std::vector<std::string> const& candidates);

/// "; did you mean 'layers'?", or "" if none is near.
std::string did_you_mean(std::string_view word, std::vector<std::string> const& candidates);

/// Throws ConfigError about `what` if a name is not known: "there is no topic 'keys'", the nearest name, and all of them. `sort`: "topic".
void expect_known(std::string const& what, std::string const& name, std::vector<std::string> const& known, std::string const& sort = "");

/// "csv, tsv and jsonl"; another word, such as "or", may stand before the last.
std::string listed(std::vector<std::string> const& names, std::string_view word = "and");

/// Throws ConfigError about `what` unless a file's name has one of these endings, two or more: {".csv", ".json"}.
void expect_ending(std::string const& what, std::filesystem::path const& file, std::vector<std::string> const& endings);

}  // namespace heed
