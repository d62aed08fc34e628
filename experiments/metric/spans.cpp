// Of answers that are stretches of a passage, as SQuAD counts them (Rajpurkar et al. 2016, 2018).

#include <algorithm>

#include "experiments/data/examples/answers.hpp"
#include "experiments/data/examples/example.hpp"
#include "experiments/metric/row.hpp"
#include "experiments/metric/span.hpp"

namespace heed {

namespace {

/// Answers against the right ones, the best over a question's, after SQuAD's normalisation. Where some questions have no answer, it is one
/// to say so: a stretch counts if its score is above that of no answer.
class Spans : public Metric {
 public:
  void add(EvaluatedBatch const& seen) override {
    if (!seen.batch().has("passage")) return;
    auto const guesses = span_guesses(seen.batch(), seen.predictions());
    for (std::size_t i = 0; i < guesses.size(); ++i) {
      std::vector<std::string> answers;
      for (Answer const& answer : seen.data().example(seen.rows().numbers[i])->answers) answers.push_back(answer.text);
      SpanGuess answered = guesses[i];
      answered.null_score = answered.score - 1;  // its stretch, whether or not it is above no answer
      auto const text = text_of(answered, seen.data(), seen.batch(), static_cast<std::int64_t>(i));
      auto const scores = answers.empty() ? AnswerScores() : answer_scores(text, answers);
      questions_.push_back({guesses[i].score - guesses[i].null_score, scores, answers.empty()});
    }
  }

 protected:
  struct SpanQuestion {
    double above;         ///< how much its score is above that of no answer
    AnswerScores scores;  ///< of its stretch
    bool none;            ///< it has no answer
  };
  using Score = double AnswerScores::*;

  std::vector<SpanQuestion> const& questions() const { return questions_; }
  double mean(Score score) const {
    double sum = 0;
    for (auto const& [above, scores, none] : questions_) sum += above > 0 ? scores.*score : none ? 1 : 0;
    return sum / static_cast<double>(questions_.size());
  }

 private:
  std::vector<SpanQuestion> questions_;
};

class SpanMean : public Spans {
 public:
  SpanMean(std::string name, Score score) : name_(std::move(name)), score_(score) {}
  void write(Row& row, std::string const& prefix) const override { row.set(prefix + "." + name_, mean(score_)); }

 private:
  std::string name_;
  Score score_;
};

/// F1 at the threshold of the score above no answer's that is best, and that threshold, as SQuAD 2's own program tells them: chosen on the
/// rows that they are told of. Nothing where every question has an answer.
class SpanBest : public Spans {
 public:
  void write(Row& row, std::string const& prefix) const override {
    if (std::ranges::none_of(questions(), &SpanQuestion::none)) return;
    auto sorted = questions();
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
};

std::optional<std::string> no_spans(Dataset const&, Model const& model) {
  if (predicts(model, "span")) return std::nullopt;
  return "the model does not say where an answer stands";
}

constexpr Bounds share{.least = 0, .greatest = 1};

Declared<MetricKind> const exact_declared{
    {.info = {"span_exact", "", Better::higher, "share of the answers that are a right one, word for word, after SQuAD's normalisation",
              share},
     .always = 9,
     .unavailable = no_spans,
     .make = [](Dataset const&) { return std::make_unique<SpanMean>("span_exact", &AnswerScores::exact); }}};
Declared<MetricKind> const f1_declared{
    {.info = {"span_f1", "", Better::higher, "F1 of an answer's words, the best over the right ones", share},
     .always = 10,
     .unavailable = no_spans,
     .make = [](Dataset const&) { return std::make_unique<SpanMean>("span_f1", &AnswerScores::f1); }}};
Declared<MetricKind> const best_declared{
    {.info = {"span_best.*", "", std::nullopt,
              "F1 at the threshold above no answer's score that is best for these rows, and that threshold"},
     .always = 11,
     .unavailable = no_spans,
     .make = [](Dataset const&) { return std::make_unique<SpanBest>(); }}};

}  // namespace

}  // namespace heed
