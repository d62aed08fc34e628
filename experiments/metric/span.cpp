#include "experiments/metric/span.hpp"

namespace heed {

SpanGuess best_span(std::span<double const> starts, std::span<double const> ends, std::span<std::int64_t const> passage) {
  SpanGuess best;
  std::size_t begin = passage.size();  // the best start so far
  for (std::size_t place = 0; place < passage.size(); ++place) {
    if (passage[place] == 2) best.null_score = starts[place] + ends[place];
    if (passage[place] != 1) continue;
    if (begin == passage.size() || starts[place] > starts[begin]) begin = place;
    double const score = starts[begin] + ends[place];
    if (best.begin >= 0 && score <= best.score) continue;
    best.begin = static_cast<std::int64_t>(begin);
    best.end = static_cast<std::int64_t>(place);
    best.score = score;
  }
  return best;
}

std::vector<SpanGuess> span_guesses(Batch const& batch, std::vector<Prediction> const& predictions) {
  auto const logits = predictions.front().head.logits().to_vector();  // [B, 2, T]
  auto const passage = batch["passage"].data<std::int64_t>();
  auto const places = static_cast<std::size_t>(batch["passage"].size(1));
  std::vector<SpanGuess> guesses;
  for (std::size_t row = 0; row * places < passage.size(); ++row) {
    std::span const of_row(logits.data() + 2 * row * places, 2 * places);
    guesses.push_back(best_span(of_row.first(places), of_row.subspan(places), passage.subspan(row * places, places)));
  }
  return guesses;
}

std::string text_of(SpanGuess const& guess, Dataset const& data, Batch const& batch, std::int64_t row) {
  if (!guess.answers()) return "";
  Tensor const& inputs = batch["inputs"];
  auto const first = inputs.data<std::int64_t>().begin() + row * inputs.size(1);
  return data.decode({first + guess.begin, first + guess.end + 1}).value_or("");
}

}  // namespace heed
