#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/data/dataset.hpp"
#include "experiments/data/examples/example.hpp"

namespace heed {

/// The baselines of labelled examples; none without held-out ones.
/// Classes: the most frequent class of the held-out examples (the best constant answer); logistic regression over words and bigrams
/// (bag_of_words). Multiple choice: the most frequent number of the right option; the shortest and the longest option; the option with the
/// most words in common with the text; the first of ties. Spans: the first sentence with the most words in common with the question; a
/// random span as long as a training answer; and, where some questions have no answer, no answer.
std::vector<Baseline> baselines(Examples const& examples);

/// Lower-cased words, and other characters one by one: "Isn't it?" gives isn't, it, ?
std::vector<std::string> plain_words(std::string_view text);

/// Multinomial logistic regression over the presence of words and bigrams that occur in more than one training example, normalised to unit
/// length. For pairs of texts, each text has its own features unless the pair is symmetric, and the share of each text's words that the
/// other has is added. The L2 penalty is chosen on every fifth training example.
Baseline bag_of_words(Examples const& examples);

}  // namespace heed
