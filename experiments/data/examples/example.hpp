#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/data/open.hpp"

namespace heed {

/// A span of a passage that answers a question.
struct Answer {
  std::string text;
  Index start = 0;  ///< its first byte in the passage
  bool operator==(Answer const&) const = default;
};

/// A labelled example as text, before tokens and delimiters are chosen.
struct Example {
  std::string first = {};                 ///< the text, the premise, the question, or the beginning to be continued
  std::string second = {};                ///< the hypothesis, the other sentence, or the passage; empty: none
  std::vector<std::string> options = {};  ///< continuations, one of which is right; empty: not a multiple choice
  std::string label = {};                 ///< the class; for a multiple choice the right option's number, from 0
  std::vector<Answer> answers = {};       ///< right spans of `second`; empty with `span`: there is no answer
  bool span = false;                      ///< whether a span of `second` is asked for
  std::string location = {};              ///< "FILE:LINE", for messages
};

/// Examples by split. `test` is empty unless asked for.
struct Examples {
  std::vector<Example> training, held_out;
  std::vector<std::string> classes;       ///< labels in the order of their ids; empty for multiple choice and spans
  bool symmetric = false;                 ///< the order of the two texts has no meaning
  ReadFiles files;                        ///< "training", "held_out", "test"
  bool exact_match = false;               ///< the model is given which tokens of `second` occur in `first` (Chen et al. 2017)
  std::vector<double> weights = {};       ///< of the classes in the loss; empty: 1
  std::vector<std::string> remarks = {};  ///< on what the files hold
  std::string join = " ";                 ///< what stands between the texts where a language model reads them as one
};

/// What a name is but for its form: without case, compatible characters as one (NFKC_Casefold), one blank between words, numbers of up to
/// 15 characters as numbers (+1, 1.0, 01: 1).
std::string folded(std::string_view name);

/// The examples' remarks, the classes with their counts, and sentences on classes that differ in form alone, have one training example or
/// none, and on held-out examples whose texts are in the training part too.
std::vector<std::string> remarks_on(Examples const& examples);

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
std::vector<SourcedExample> sample_of(std::vector<SourcedExample> const& all, Index size, std::uint64_t seed);

/// The first byte of each character of a UTF-8 text, followed by the text's size.
std::vector<std::size_t> character_starts(std::string_view text);

// Comparison of answers as in SQuAD's evaluation script (evaluate-v2.0.py; Rajpurkar et al. 2016, 2018).

/// Lower-cased, without ASCII punctuation and the articles a, an and the, words separated by one blank. Other punctuation stays and
/// delimits words: The “A” – becomes “ ” –.
std::string normalised_answer(std::string_view text);

struct AnswerScores {
  double exact = 0;  ///< 1 if the normalised answers are equal, else 0
  double f1 = 0;     ///< harmonic mean of precision and recall of the words, repetitions counted
};
/// Scores of an answer against a reference. If either is empty after normalisation, both scores are 1 if the other is empty too, else 0.
AnswerScores answer_scores(std::string_view given, std::string_view right);
/// Each score is the best over several references. References that are empty after normalisation are ignored; if none is left, the question
/// has no answer, and only an empty answer is correct.
AnswerScores answer_scores(std::string_view given, std::vector<std::string> const& right);

}  // namespace heed
