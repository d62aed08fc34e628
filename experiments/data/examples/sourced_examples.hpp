#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/data/examples/example.hpp"

namespace heed {

/// An example, and what may not be torn apart: questions about one article, examples with the same first text.
struct SourcedExample {
  Example example;
  std::string article;
  std::string id;  ///< by which what is drawn for it stays the same whatever stands before it
};

/// Takes whole articles out of `all` until they hold the share of its examples, in an order that depends on the articles' names alone: not
/// on the seed, and not on the order in the file.
std::vector<SourcedExample> take_articles(std::vector<SourcedExample>& all, double share);

/// Gives each question that has an answer, with this probability, a passage of another article instead of its own, and no answer; the
/// draws depend on the question's id alone. Throws Error if the passages are of one article.
void make_unanswerable(std::vector<SourcedExample>& all, double share);

/// So many of the examples, in their order. They are drawn by the seed and have the labels in the proportions of all, as nearly as whole
/// numbers allow. A larger sample of the same seed holds a smaller one.
std::vector<Example> sample_of(std::vector<Example> const& all, std::int64_t size, std::uint64_t seed);

/// The first byte of each character of a text that is UTF-8, and behind them its size.
std::vector<std::size_t> character_starts(std::string_view text);

/// SQuAD's JSON, version 1.1 or 2 (Rajpurkar et al. 2016, 2018): the question is `first`, the paragraph `second`. A question with
/// `is_impossible` has no answers; its plausible ones are none. Throws FileError naming file and question for what is not of this form and
/// for an answer that is not at its place in the paragraph.
std::vector<SourcedExample> read_squad(std::string_view content, std::string const& path);

}  // namespace heed
