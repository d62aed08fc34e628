#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

// How answers are compared, as SQuAD's evaluation script does (evaluate-v2.0.py; Rajpurkar et al. 2016, 2018).

/// Lower case, without ASCII punctuation, without the articles a, an and the, and with one blank between words. Other punctuation stays,
/// and parts an article from a word: of "The “A” –" is left “ ” –. (A Greek Σ becomes σ wherever it stands; Python has ς at the end of a
/// word.)
std::string normalised_answer(std::string_view text);

struct AnswerScores {
  double exact = 0;  ///< 1 if the normalised answers are equal, else 0
  double f1 = 0;     ///< harmonic mean of precision and recall of their words, repetitions counted
};
/// An answer against a right one; of two of which one is empty once it is normalised, both scores are whether the other is too.
AnswerScores answer_scores(std::string_view given, std::string_view right);
/// Each score the best against several right ones. Those that are empty once they are normalised do not count; if none is left, nothing is
/// to be answered, and only nothing is right.
AnswerScores answer_scores(std::string_view given, std::vector<std::string> const& right);

}  // namespace heed
