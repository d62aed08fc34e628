#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

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
