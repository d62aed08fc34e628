#include "experiments/train/predictions.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>

#include "autograd/graph.hpp"
#include "autograd/ops/softmax.hpp"
#include "experiments/data/examples/example.hpp"
#include "experiments/metric/probe/attention_maps.hpp"
#include "experiments/metric/spans.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

constexpr std::size_t max_with_attention = 12;  ///< number of wrong examples that are listed with attention weights

nlohmann::ordered_json line_of(Example const& example, Index row, nlohmann::ordered_json const& predicted) {
  nlohmann::ordered_json line{{"row", row}, {"place", example.location}, {"first", example.first}};
  if (!example.second.empty()) line["second"] = example.second;
  if (!example.options.empty()) line["options"] = example.options;
  line.update(predicted);
  return line;
}

ExamplePrediction of_label(Example const& example, Index row, std::span<double const> shares, std::vector<std::string> const& classes) {
  auto const found = static_cast<std::size_t>(std::ranges::max_element(shares) - shares.begin());
  std::string const predicted = classes.empty() ? std::to_string(found) : classes[found];
  bool const right = predicted == example.label;
  nlohmann::ordered_json answer{{"right", right}, {"label", example.label}, {"predicted", predicted}, {"probability", shares[found]}};
  if (example.label.empty()) answer.erase("right"), answer.erase("label");
  for (std::size_t i = 0; i < shares.size(); ++i) answer["probabilities"][classes.empty() ? std::to_string(i) : classes[i]] = shares[i];
  return {line_of(example, row, answer), right, shares[found], row};
}

ExamplePrediction of_span(Example const& example, Index row, SpanGuess const& guess, std::string const& text, bool labelled) {
  double const above = guess.score - guess.null_score;
  std::vector<std::string> answers;
  for (Answer const& answer : example.answers) answers.push_back(answer.text);
  bool const right = example.answers.empty() ? !guess.answers() : answer_scores(text, answers).exact == 1;
  nlohmann::ordered_json answer{{"right", right}, {"answers", answers}, {"predicted", text}, {"above_no_answer", above}};
  if (!labelled) answer.erase("right"), answer.erase("answers");
  return {line_of(example, row, answer), right, above, row};
}

/// The attention of a sequence's summary token in the last layer that attends to the inputs: the mean of the heads, by token.
std::optional<nlohmann::ordered_json> summary_attention(Dataset const& data, Model const& model, Batch const& batch, bool first) {
  auto const attention = record_attention_maps(model, batch, {data.facts().tokenizer, nullptr, data.signature()["inputs"].added});
  if (attention.layers.empty() || batch["inputs"].rank() != 2) return std::nullopt;
  Tensor const& weights = attention.layers.back().weights;  // [1, H, n, m]
  Index const heads = weights.size(1), queries = weights.size(2), keys = weights.size(3);
  Index const length = batch.has("lengths") ? batch["lengths"].data<std::int64_t>()[0] : queries, query = first ? 0 : length - 1;
  auto const labels = attention.axis("inputs", 0, keys);
  auto tokens = nlohmann::ordered_json::array();
  for (Index key = 0; key < length; ++key) {
    double mean = 0;
    for (Index head = 0; head < heads; ++head) mean += weights.at((head * queries + query) * keys + key) / static_cast<double>(heads);
    tokens.push_back({at(labels, key), mean});
  }
  return tokens;
}

}  // namespace

std::vector<ExamplePrediction> predictions_for(Dataset const& data, Model const& model, HeldOut const& rows, bool labelled) {
  auto const predictions = model.run(rows.batch, {}).predictions;
  std::vector<ExamplePrediction> all;
  if (predictions.front().term.name == "span") {
    auto const guesses = span_guesses(rows.batch, predictions);
    for (std::size_t i = 0; i < guesses.size(); ++i) {
      Original const original = data.original(rows.numbers[i]);
      all.push_back(of_span(*original.example, rows.numbers[i], guesses[i], answer_text(guesses[i], original, rows.batch, i), labelled));
    }
    return all;
  }
  Tensor const logits = predictions.front().head.logits();
  auto const shares = softmax(logits, -1).to_vector();
  auto const classes = static_cast<std::size_t>(logits.size(-1));
  for (std::size_t i = 0; i < rows.numbers.size(); ++i)
    all.push_back(of_label(*data.original(rows.numbers[i]).example, rows.numbers[i], std::span(shares).subspan(i * classes, classes),
                           data.facts().classes));
  return all;
}

void write_predictions(std::filesystem::path const& folder, Experiment const& settings, Dataset const& data, Model const& model) {
  Index const rows = settings.train.evaluate.batch.value_or(settings.train.batch), context = model.context();
  Index const batches = settings.train.evaluate.count(data.validation_batches(rows, context));
  if (batches == 0 || data.original(0).example == nullptr) return;
  NoGrad const quiet;
  std::vector<ExamplePrediction> all;
  for (Index i = 0; i < batches; ++i)
    for (ExamplePrediction& prediction : predictions_for(data, model, held_out(data, i, rows, context)))
      all.push_back(std::move(prediction));
  std::vector<ExamplePrediction*> wrong;
  for (ExamplePrediction& prediction : all)
    if (!prediction.right) wrong.push_back(&prediction);
  std::ranges::stable_sort(wrong, std::greater(), &ExamplePrediction::confidence);
  bool const first = data.signature().has("segments");  // [CLS] stands in front where there are segments
  for (std::size_t i = 0; i < std::min(wrong.size(), max_with_attention); ++i)
    if (auto const tokens = summary_attention(data, model, data.validation(wrong[i]->row, 1, context), first))
      wrong[i]->line["looked"] = *tokens;
  std::string text;
  for (ExamplePrediction const& prediction : all) text += json_text(prediction.line) + "\n";
  write_atomically(folder / "predictions.jsonl", text);
}

}  // namespace heed
