#include "experiments/run/predictions.hpp"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "autograd/graph.hpp"
#include "autograd/ops/softmax.hpp"
#include "experiments/data/examples/answers.hpp"
#include "experiments/data/examples/example.hpp"
#include "experiments/metric/probe/attention_maps.hpp"
#include "experiments/metric/spans.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

constexpr std::size_t most_looks = 12;  ///< number of wrong examples with attention, on a page

/// What is said of one example.
struct Said {
  nlohmann::ordered_json line;
  bool right = false;
  double confidence = 0;
  std::int64_t row = 0;  ///< of the held-out ones
};

nlohmann::ordered_json told(Example const& example, std::int64_t row) {
  nlohmann::ordered_json line{{"row", row}, {"place", example.place}, {"first", example.first}};
  if (!example.second.empty()) line["second"] = example.second;
  if (!example.options.empty()) line["options"] = example.options;
  return line;
}

Said of_label(Example const& example, std::int64_t row, std::span<double const> shares, std::vector<std::string> const& classes) {
  auto const found = static_cast<std::size_t>(std::ranges::max_element(shares) - shares.begin());
  Said said{told(example, row), false, shares[found], row};
  std::string const predicted = classes.empty() ? std::to_string(found) : classes[found];
  said.right = predicted == example.label;
  said.line["right"] = said.right;
  said.line["label"] = example.label;
  said.line["predicted"] = predicted;
  said.line["probability"] = shares[found];
  return said;
}

Said of_span(Example const& example, std::int64_t row, SpanGuess const& guess, std::string const& text) {
  Said said{told(example, row), false, guess.score - guess.null_score, row};
  std::vector<std::string> right;
  for (Answer const& answer : example.answers) right.push_back(answer.text);
  said.right = example.answers.empty() ? !guess.answers() : answer_scores(text, right).exact == 1;
  said.line["right"] = said.right;
  said.line["answers"] = right;
  said.line["predicted"] = text;
  said.line["above_no_answer"] = guess.score - guess.null_score;
  return said;
}

std::vector<Said> said_of(Dataset const& data, Model const& model, HeldOut const& rows) {
  auto const predictions = model.run(rows.batch, {}).predictions;
  std::vector<Said> all;
  if (predictions.front().term.name == "span") {
    auto const guesses = span_guesses(rows.batch, predictions);
    for (std::size_t i = 0; i < guesses.size(); ++i)
      all.push_back(of_span(*data.example(rows.numbers[i]), rows.numbers[i], guesses[i],
                            text_of(guesses[i], data, rows.batch, static_cast<std::int64_t>(i))));
    return all;
  }
  Tensor const logits = predictions.front().head.logits();
  auto const shares = softmax(logits, -1).to_vector();
  auto const classes = static_cast<std::size_t>(logits.size(-1));
  for (std::size_t i = 0; i < rows.numbers.size(); ++i)
    all.push_back(
        of_label(*data.example(rows.numbers[i]), rows.numbers[i], std::span(shares).subspan(i * classes, classes), data.classes()));
  return all;
}

/// The attention of a sequence's summary token in the last layer that attends to the inputs: the mean of the heads, by token.
std::optional<nlohmann::ordered_json> looked(Dataset const& data, Model const& model, Batch const& batch, bool first) {
  auto const attention = attention_maps(model, batch, {data.tokenizer_handle(), nullptr, data.signature()["inputs"].added});
  if (attention.layers.empty() || batch["inputs"].rank() != 2) return std::nullopt;
  Tensor const& weights = attention.layers.back().weights;  // [1, H, n, m]
  std::int64_t const heads = weights.size(1), queries = weights.size(2), keys = weights.size(3);
  std::int64_t const length = batch.has("lengths") ? batch["lengths"].data<std::int64_t>()[0] : queries, query = first ? 0 : length - 1;
  auto const labels = attention.axis("inputs", 0, keys);
  auto tokens = nlohmann::ordered_json::array();
  for (std::int64_t key = 0; key < length; ++key) {
    double mean = 0;
    for (std::int64_t head = 0; head < heads; ++head)
      mean += weights.at((head * queries + query) * keys + key) / static_cast<double>(heads);
    tokens.push_back({labels[static_cast<std::size_t>(key)], mean});
  }
  return tokens;
}

}  // namespace

std::string write_predictions(std::filesystem::path const& folder, Experiment const& settings, Dataset const& data, Model const& model) {
  std::int64_t const rows = settings.train.evaluate.batch.value_or(settings.train.batch), context = model.context();
  std::int64_t const batches = settings.train.evaluate.count(data.validation_batches(rows, context));
  if (batches == 0 || data.example(0) == nullptr) return "";
  NoGrad const quiet;
  std::vector<Said> all;
  for (std::int64_t i = 0; i < batches; ++i)
    for (Said& said : said_of(data, model, held_out(data, i, rows, context))) all.push_back(std::move(said));
  std::vector<Said*> wrong;
  for (Said& said : all)
    if (!said.right) wrong.push_back(&said);
  std::ranges::stable_sort(wrong, std::greater(), &Said::confidence);
  bool const first = data.signature().has("segments");  // [CLS] stands in front where there are segments
  for (std::size_t i = 0; i < std::min(wrong.size(), most_looks); ++i)
    if (auto const tokens = looked(data, model, data.validation(wrong[i]->row, 1, context), first)) wrong[i]->line["looked"] = *tokens;
  std::string text;
  for (Said const& said : all) text += json_text(said.line) + "\n";
  write_atomically(folder / "predictions.jsonl", text);
  return "predictions.jsonl";
}

}  // namespace heed
