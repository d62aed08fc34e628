#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/metric/evaluated_batch.hpp"

namespace heed {

/// The stretch that a span head finds most probable.
struct SpanGuess {
  std::int64_t begin = -1, end = -1;  ///< places, both included; −1: the passage has none
  double score = 0;                   ///< S·T_begin + E·T_end
  double null_score = 0;              ///< S·C + E·C, of "there is no answer"

  /// Whether it answers: its score is above that of no answer by more than a threshold (Devlin et al. 2019, section 4.3).
  bool answers(double threshold = 0) const { return begin >= 0 && score > null_score + threshold; }
};

/// max over i ≤ j of starts[i] + ends[j], places of the passage (1 in `passage`) alone; of equals the first. 2 in `passage` is where no
/// answer stands.
SpanGuess best_span(std::span<double const> starts, std::span<double const> ends, std::span<std::int64_t const> passage);

/// Of every row of a batch whose first term is "span".
std::vector<SpanGuess> span_guesses(Batch const& batch, std::vector<Prediction> const& predictions);
/// The text of a row's stretch; "" if it does not answer.
std::string text_of(SpanGuess const& guess, Dataset const& data, Batch const& batch, std::int64_t row);

}  // namespace heed
