#pragma once

#include <string>
#include <vector>

#include "experiments/metric/evaluated_batch.hpp"

namespace heed {

/// The most probable span of a span head.
struct SpanGuess {
  Index begin = -1, end = -1;  ///< positions, both included; −1: there are no passage tokens
  double score = 0;            ///< S·T_begin + E·T_end
  double null_score = 0;       ///< S·C + E·C, the score of no answer

  /// Whether it answers: its score exceeds that of no answer by more than the threshold (Devlin et al. 2019, section 4.3).
  bool answers(double threshold = 0) const { return begin >= 0 && score > null_score + threshold; }
};

/// For every sequence of a batch whose first term is "span".
std::vector<SpanGuess> span_guesses(Batch const& batch, std::vector<Prediction> const& predictions);
/// The passage of a held-out example from its token `first` to its token `last`, as written, in whole characters.
std::string stretch(Original const& original, Index first, Index last);
/// The characters of the passage that the span of a row of the batch consists of; "" if it does not answer.
std::string answer_text(SpanGuess const& guess, Original const& original, Batch const& batch, std::size_t row);

}  // namespace heed
