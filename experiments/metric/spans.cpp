// Of answers that are stretches of a passage, as SQuAD counts them (Rajpurkar et al. 2016, 2018).

#include <algorithm>

#include "experiments/data/examples/example.hpp"
#include "experiments/metric/row.hpp"
#include "experiments/metric/span.hpp"
#include "experiments/text/answers.hpp"

namespace heed {

namespace {

/// Exact matches and F1 of the words, the best over a question's answers, after SQuAD's normalisation. Where some questions have no answer,
/// it is one to say so: the stretch counts if its score is above that of no answer. Then the values at the best threshold of that
/// difference are told too, as SQuAD 2's own program does: chosen on the rows that they are told of.
class Spans : public Metric {
 public:
  void add(Seen const& seen) override {
    auto const guesses = span_guesses(seen.batch(), seen.predictions());
    for (std::size_t i = 0; i < guesses.size(); ++i) {
      Example const& example = *seen.data().example(seen.rows().numbers[i]);
      std::vector<std::string> answers;
      for (Answer const& answer : example.answers) answers.push_back(answer.text);
      SpanGuess answered = guesses[i];
      answered.null_score = answered.score - 1;  // its stretch, whether or not it is above no answer
      auto const text = text_of(answered, seen.data(), seen.batch(), static_cast<std::int64_t>(i));
      bool const none = answers.empty();
      unanswerable_ = unanswerable_ || none;
      auto const scores = none ? AnswerScores() : answer_scores(text, answers);
      questions_.push_back({guesses[i].score - guesses[i].null_score, scores.exact, scores.f1, none});
    }
  }
  void write(Row& row, std::string const& prefix) const override {
    auto const [exact, f1] = at(0);
    row.set(prefix + ".span_exact", exact);
    row.set(prefix + ".span_f1", f1);
    if (!unanswerable_) return;
    auto const [best, threshold] = best_threshold();
    row.set(prefix + ".span_best_f1", best);
    row.set(prefix + ".span_best_threshold", threshold);
  }

 private:
  struct Question {
    double above;      ///< how much its score is above that of no answer
    double exact, f1;  ///< of its stretch
    bool none;         ///< it has no answer
  };

  /// Means where only stretches count whose score is above no answer's by more than a threshold.
  std::pair<double, double> at(double threshold) const {
    double exact = 0, f1 = 0;
    for (Question const& question : questions_) {
      bool const answers = question.above > threshold;
      exact += question.none ? (answers ? 0 : 1) : answers ? question.exact : 0;
      f1 += question.none ? (answers ? 0 : 1) : answers ? question.f1 : 0;
    }
    auto const count = static_cast<double>(questions_.size());
    return {exact / count, f1 / count};
  }

  /// The best F1 over all thresholds, and the least of these: one question after the other is answered no more.
  std::pair<double, double> best_threshold() const {
    auto sorted = questions_;
    std::ranges::sort(sorted, {}, &Question::above);
    double sum = 0;
    for (Question const& question : sorted) sum += question.none ? 0 : question.f1;
    double best = sum, threshold = sorted.front().above - 1;
    for (Question const& question : sorted) {
      sum += question.none ? 1 : -question.f1;
      if (sum > best) best = sum, threshold = question.above;
    }
    return {best / static_cast<double>(sorted.size()), threshold};
  }

  std::vector<Question> questions_;
  bool unanswerable_ = false;
};

DeclaredMetric const f1_declared{
    {"validation.span_f1", "", Better::higher, "F1 of an answer's words, the best over the right ones", {.least = 0, .greatest = 1}}};
DeclaredMetric const averaged_f1_declared{
    {"validation.ema.span_f1", "", Better::higher, "F1 of an answer's words; of averaged weights", {.least = 0, .greatest = 1}}};
DeclaredMetric const best_declared{
    {"validation.span_best_f1", "", Better::higher, "span_f1 at the threshold that is best for these rows", {.least = 0, .greatest = 1}}};
DeclaredMetric const averaged_best_declared{
    {"validation.ema.span_best_f1", "", Better::higher, "span_f1 at the best threshold; of averaged weights", {.least = 0, .greatest = 1}}};
DeclaredMetric const threshold_declared{{"validation.span_best_threshold", "", std::nullopt, "of the score above that of no answer"}};
DeclaredMetric const averaged_threshold_declared{
    {"validation.ema.span_best_threshold", "", std::nullopt, "of the score above that of no answer; of averaged weights"}};
DeclaredMetricKind const declared{
    {.info = {"span_exact",
              "",
              Better::higher,
              "share of the answers that are one of the right ones, word for word, after SQuAD's normalisation",
              {.least = 0, .greatest = 1}},
     .always = 6,
     .lacks = [](Dataset const&, Model const& model) -> std::optional<std::string> {
       if (predicts(model, "span")) return std::nullopt;
       return "the model does not say where an answer stands";
     },
     .make = [](Dataset const&) { return std::make_unique<Spans>(); }}};

}  // namespace

}  // namespace heed
