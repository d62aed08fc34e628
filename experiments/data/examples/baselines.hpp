#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/data/dataset.hpp"
#include "experiments/data/examples/example.hpp"

namespace heed {

/// The baselines of labelled examples; none without held-out ones.
///
/// Classes: the one that is most frequent among the held-out examples, the best that one answer to all can reach; logistic regression over
/// words and pairs of neighbouring words (bag_of_words). Multiple choice: the same of the right option's number; the shortest and the
/// longest option; the one with the most words in common with the text; of equals the first. Spans: the first sentence with the most words
/// in common with the question; a random stretch, as long as an answer of training; and, where some questions cannot be answered, no
/// answer.
std::vector<Baseline> baselines(Examples const& examples);

/// Lower-cased words, and other characters one by one: "Isn't it?" is isn't, it, ?
std::vector<std::string> plain_words(std::string_view text);

/// Multinomial logistic regression over which words and pairs of neighbouring words a text has, those that more than one training example
/// has, of unit length; of two texts over both, each with features of its own unless they have no order, and the shares of the words of
/// either that the other has. What the L2 penalty is chosen on is every fifth training example.
Baseline bag_of_words(Examples const& examples);

}  // namespace heed
