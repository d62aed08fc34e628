#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/data/examples/example.hpp"

namespace heed {

/// An example, and its group, which must stay in one split: questions about one article, examples with the same first text.
struct SourcedExample {
  Example example;
  std::string article;
  std::string id;  ///< makes random draws for this example independent of the others
};

/// Moves whole articles out of `all` until they hold this share of its examples, in an order that depends on the articles' names alone, not
/// on the seed or the order in the file.
std::vector<SourcedExample> take_articles(std::vector<SourcedExample>& all, double share);

/// Moves this share of the rows of every label out of `all`, each within one row of its share, the rows by their texts alone.
std::vector<SourcedExample> take_stratified(std::vector<SourcedExample>& all, double share);

/// Moves part number `fold` of `folds` about equal ones out of `all`: whole articles or, stratified, rows of which each label has equally
/// many in every part, but for one. The parts depend on the texts alone.
std::vector<SourcedExample> take_fold(std::vector<SourcedExample>& all, Index fold, Index folds, bool stratified);

/// With this probability replaces an answerable question's passage by one of another article, and removes its answers; draws depend on the
/// question's id alone. Throws Error if all passages are of one article.
void make_unanswerable(std::vector<SourcedExample>& all, double share);

/// A sample of `size` examples in their original order, drawn by the seed, with the label proportions of all examples up to rounding. A
/// larger sample of the same seed contains a smaller one.
std::vector<Example> sample_of(std::vector<Example> const& all, Index size, std::uint64_t seed);

/// The first byte of each character of a UTF-8 text, followed by the text's size.
std::vector<std::size_t> character_starts(std::string_view text);

}  // namespace heed
