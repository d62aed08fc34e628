// Metrics of answers that are spans of a passage, as defined by SQuAD (Rajpurkar et al. 2016, 2018).

#include "experiments/metric/spans.hpp"

#include <algorithm>
#include <span>

#include "experiments/data/examples/example.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "experiments/metric/row.hpp"

namespace heed {

namespace {

/// max over i ≤ j of starts[i] + ends[j] within the passage (1 in `passage`), the first of ties; 2 is the position of no answer.
SpanGuess best_span(std::span<double const> starts, std::span<double const> ends, std::span<Index const> passage) {
  SpanGuess best;
  std::size_t begin = passage.size();  // the best start so far
  for (std::size_t position = 0; position < passage.size(); ++position) {
    if (passage[position] == 2) best.null_score = starts[position] + ends[position];
    if (passage[position] != 1) continue;
    if (begin == passage.size() || starts[position] > starts[begin]) begin = position;
    double const score = starts[begin] + ends[position];
    if (best.begin >= 0 && score <= best.score) continue;
    best.begin = static_cast<Index>(begin);
    best.end = static_cast<Index>(position);
    best.score = score;
  }
  return best;
}

struct SpanQuestion {
  double above;         ///< how much the score of its stretch is above that of no answer
  AnswerScores scores;  ///< of its stretch
  bool none;            ///< it has no answer
};
using SpanQuestions = std::vector<SpanQuestion>;

/// Answers against the right ones, the best over a question's, after SQuAD's normalisation. Where some questions have no answer, it is one
/// to say so: a stretch counts if its score is above that of no answer.
void add_questions(EvaluatedBatch const& batch, SpanQuestions& questions) {
  if (!batch.batch().has("passage")) return;
  auto const guesses = span_guesses(batch.batch(), batch.predictions());
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    Original const original = batch.data().original(batch.rows().numbers[i]);
    auto const answers = mapped(original.example->answers, &Answer::text);
    SpanGuess answered = guesses[i];
    answered.null_score = answered.score - 1;  // its stretch, whether or not it is above no answer
    auto const text = answer_text(answered, original, batch.batch(), i);
    auto const scores = answers.empty() ? AnswerScores() : answer_scores(text, answers);
    questions.push_back({guesses[i].score - guesses[i].null_score, scores, answers.empty()});
  }
}

/// The best F1 over all thresholds on the score of the answer minus that of no answer, and the best threshold, as SQuAD 2's evaluation
/// script reports them. The threshold is chosen on the evaluated rows. Nothing if every question has an answer.
void write_best(SpanQuestions const& questions, Row& row, std::string const& prefix) {
  if (std::ranges::none_of(questions, &SpanQuestion::none)) return;
  auto sorted = questions;
  std::ranges::sort(sorted, {}, &SpanQuestion::above);
  double sum = 0;
  for (SpanQuestion const& question : sorted) sum += question.scores.f1;
  double best = sum, threshold = sorted.front().above - 1;
  for (SpanQuestion const& question : sorted) {  // one after the other is answered no more
    sum += question.none ? 1 : -question.scores.f1;
    if (sum > best) best = sum, threshold = question.above;
  }
  row.set(prefix + ".span_best.f1", best / static_cast<double>(sorted.size()));
  row.set(prefix + ".span_best.threshold", threshold);
}

/// How many answers were cut off: each lacks its beginning and its end.
void add_lost(EvaluatedBatch const& batch, double& lost) {
  lost += (static_cast<double>(batch.targets().elements()) - counted(batch.targets())) / 2;
}

void write_lost(double const& lost, Row& row, std::string const& prefix) {
  if (lost > 0) row.set(prefix + ".lost_answers", lost);
}

std::optional<std::string> no_spans(Dataset const&, Model const& model) {
  return unless(predicts(model, "span"), "the model does not predict answer spans");
}

template <class Counts>
MetricKind of_spans(int order, MetricInfo info, void (*add)(EvaluatedBatch const&, Counts&),
                    void (*write)(Counts const&, Row&, std::string const&)) {
  return {.info = std::move(info), .always = order, .unavailable = no_spans, .make = [=](Dataset const&) {
            return std::make_unique<CountedMetric<Counts>>(add, write);
          }};
}

MetricKind mean_of_spans(int order, MetricInfo info, double AnswerScores::*score) {
  auto const mean = [score](SpanQuestions const& questions) {
    double sum = 0;
    for (auto const& [above, scores, none] : questions) sum += above > 0 ? scores.*score : none ? 1 : 0;
    return sum / static_cast<double>(questions.size());
  };
  auto const make = [name = info.name, mean](Dataset const&) {
    return std::make_unique<CountedMetric<SpanQuestions>>(name, add_questions, mean);
  };
  return {.info = std::move(info), .always = order, .unavailable = no_spans, .make = make};
}

Declared<MetricKind> const span_exact_metric{mean_of_spans(
    9, {"span_exact", "", Better::higher, "exact match: share of answers that equal a right one after SQuAD's normalisation", fraction},
    &AnswerScores::exact)};
Declared<MetricKind> const span_f1_metric{mean_of_spans(
    10, {"span_f1", "", Better::higher, "F1 of an answer's words, maximum over the right answers", fraction}, &AnswerScores::f1)};
Declared<MetricKind> const best_span_f1_metric{
    of_spans(11, {"span_best.*", "", std::nullopt, "F1 at the no-answer threshold that is best for these examples, and that threshold"},
             add_questions, write_best)};
Declared<MetricKind> const lost_answers_metric{of_spans(
    12, {"lost_answers", "", std::nullopt, "number of answers that model.context cuts off; they count as wrong, but not in the loss"},
    add_lost, write_lost)};

}  // namespace

std::vector<SpanGuess> span_guesses(Batch const& batch, std::vector<Prediction> const& predictions) {
  auto const logits = predictions.front().head.logits().to_vector();  // [B, 2, T]
  auto const passage = batch["passage"].data<std::int64_t>();
  auto const length = static_cast<std::size_t>(batch["passage"].size(1));
  std::vector<SpanGuess> guesses;
  for (std::size_t row = 0; row * length < passage.size(); ++row) {
    std::span const of_row(logits.data() + 2 * row * length, 2 * length);
    guesses.push_back(best_span(of_row.first(length), of_row.subspan(length), passage.subspan(row * length, length)));
  }
  return guesses;
}

std::string stretch(Original const& original, Index first, Index last) {
  std::string_view const passage = original.example->second;
  auto begin = at(original.starts, first), end = at(original.starts, last + 1);
  auto const within_character = [&](std::size_t at) { return at < passage.size() && (passage[at] & 0xC0) == 0x80; };
  while (begin > 0 && within_character(begin)) --begin;
  while (within_character(end)) ++end;
  auto const words = words_of(passage.substr(begin, end - begin));
  return words.empty() ? "" : std::string(words.front().begin(), words.back().end());
}

std::string answer_text(SpanGuess const& guess, Original const& original, Batch const& batch, std::size_t row) {
  if (!guess.answers()) return "";
  Tensor const& passage = batch["passage"];
  auto const is_passage = passage.rows(static_cast<Index>(row), 1).data<std::int64_t>();
  auto const before = std::ranges::find(is_passage, 1) - is_passage.begin();
  return stretch(original, guess.begin - before, guess.end - before);
}

}  // namespace heed
