#include "experiments/train/finished_run.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/graph.hpp"
#include "autograd/ops/softmax.hpp"
#include "experiments/config/table.hpp"
#include "experiments/data/examples/answers.hpp"
#include "experiments/data/examples/example.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/metric/key.hpp"
#include "experiments/metric/probe/attention_maps.hpp"
#include "experiments/metric/spans.hpp"
#include "experiments/train/ranks.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

void add_selection(nlohmann::ordered_json& summary, FinishedRun const& run) {
  if (auto const* const best = run.kept())
    summary["best"] = {{"step", best->step},
                       {"metric", run.settings.train.select.metric},
                       {"value", number(best->value)},
                       {"evaluations", run.selection.evaluations()}};
  if (auto const why = run.selection.stop(); why && run.trainer.step() < run.settings.train.steps) {
    summary["stopped_at"] = run.trainer.step();
    summary["stopped_of"] = run.settings.train.steps;
    summary["stopped_because"] = *why;
  }
}

/// What the values are held against. (`yardsticks` is the file format's word for reference losses.)
void add_references(nlohmann::ordered_json& summary, Dataset const& data) {
  for (auto const& [name, loss] : data.reference_losses()) summary["yardsticks"][name] = loss;
  for (auto const& [name, values] : data.facts().baselines)
    for (auto const& [metric, value] : values)
      summary["baselines"].push_back({{"name", name}, {"metric", "validation." + metric}, {"value", number(value)}});
}

/// That training has made the loss much larger (twice, and by half a nat), if it has.
std::optional<std::string> grown_loss(std::filesystem::path const& folder) {
  auto const history = read_history(folder);
  auto const found = history.find("loss");
  if (found == history.end()) return std::nullopt;
  auto const [first, last] = std::pair(found->second.front().second, found->second.back().second);
  if (!(last > 2 * first && last > first + 0.5)) return std::nullopt;
  return fmt::format("training ended with a loss of {}, far above its first one of {}: the learning rate may be too high",
                     short_number(last, 4), short_number(first, 4));
}

void print_selection(FinishedRun const& run) {
  auto const why = run.selection.stop();
  if (why && run.trainer.step() < run.settings.train.steps) fmt::print("  stopped early: {}\n", *why);
  if (auto const* const best = run.kept())
    fmt::print("  kept: step {}, the best of {} evaluations by {}; selected on these data, its value is optimistic\n", best->step,
               run.selection.evaluations(), run.settings.train.select.metric);
}

constexpr std::size_t max_with_attention = 12;  ///< number of wrong examples that are listed with attention weights

/// The prediction for one held-out example.
struct ExamplePrediction {
  nlohmann::ordered_json line;  ///< of predictions.jsonl
  bool right = false;
  double confidence = 0;
  Index row = 0;  ///< its number in the held-out data
};

nlohmann::ordered_json line_of(Example const& example, Index row, nlohmann::ordered_json const& predicted) {
  nlohmann::ordered_json line{{"row", row}, {"place", example.place}, {"first", example.first}};
  if (!example.second.empty()) line["second"] = example.second;
  if (!example.options.empty()) line["options"] = example.options;
  line.update(predicted);
  return line;
}

ExamplePrediction of_label(Example const& example, Index row, std::span<double const> shares, std::vector<std::string> const& classes) {
  auto const found = static_cast<std::size_t>(std::ranges::max_element(shares) - shares.begin());
  std::string const predicted = classes.empty() ? std::to_string(found) : classes[found];
  bool const right = predicted == example.label;
  auto line = line_of(example, row, {{"right", right}, {"label", example.label}, {"predicted", predicted}, {"probability", shares[found]}});
  return {std::move(line), right, shares[found], row};
}

ExamplePrediction of_span(Example const& example, Index row, SpanGuess const& guess, std::string const& text) {
  double const above = guess.score - guess.null_score;
  std::vector<std::string> answers;
  for (Answer const& answer : example.answers) answers.push_back(answer.text);
  bool const right = example.answers.empty() ? !guess.answers() : answer_scores(text, answers).exact == 1;
  auto line = line_of(example, row, {{"right", right}, {"answers", answers}, {"predicted", text}, {"above_no_answer", above}});
  return {std::move(line), right, above, row};
}

std::vector<ExamplePrediction> predictions_for(Dataset const& data, Model const& model, HeldOut const& rows) {
  auto const predictions = model.run(rows.batch, {}).predictions;
  std::vector<ExamplePrediction> all;
  if (predictions.front().term.name == "span") {
    auto const guesses = span_guesses(rows.batch, predictions);
    for (std::size_t i = 0; i < guesses.size(); ++i) {
      Original const original = data.original(rows.numbers[i]);
      all.push_back(of_span(*original.example, rows.numbers[i], guesses[i], answer_text(guesses[i], original, rows.batch, i)));
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

double value_or_nan(Row const& row, std::string const& name) {
  double const* const value = row.find(name);
  return value != nullptr ? *value : std::nan("");
}

double tokens_per_second(Index tokens, double seconds) { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }

Selection::Best const* FinishedRun::kept() const { return settings.train.keeps_best() && selection.best() ? &*selection.best() : nullptr; }

Row FinishedRun::values() const {
  Row all{last.step, {}};
  for (auto const& [name, value] : last.values) {
    double const* const best = kept() != nullptr && MetricKey::of(name).is_held_out() ? kept()->row.find(name) : nullptr;
    all.set(name, best != nullptr ? *best : value);
  }
  return all;
}

nlohmann::ordered_json summary_of(FinishedRun const& run, std::filesystem::path const& folder) {
  Trainer const& trainer = run.trainer;
  nlohmann::ordered_json summary{
      {"name", run.settings.name}, {"finished", true}, {"steps", trainer.step()}, {"parameters", trainer.parameters().elements()}};
  for (auto const& [name, value] : run.values().values) summary[name] = number(value);
  add_selection(summary, run);
  add_references(summary, trainer.data());
  summary["time.seconds"] = run.seconds;
  summary["time.tokens_per_second"] = number(tokens_per_second(trainer.tokens_read(), run.seconds_here));
  summary["memory.peak"] = static_cast<Index>(run.memory_peak);
  summary["data"] = trainer.data().describe();
  if (auto const grown = grown_loss(folder)) summary["grown"] = *grown;
  if (auto const cut = trainer.data().facts().cut_short(trainer.model().context())) summary["cut"] = *cut;
  if (auto const counts = interruptions_of(folder); counts.any()) summary["interruptions"] = as_json(counts);
  auto const& read = trainer.files_read();
  if (auto const init = read.find("init.from"); init != read.end())
    summary["init"] = {{"file", init->second.file}, {"sha256", init->second.sha256}, {"remark", trainer.start_remark()}};
  summary["read"] = to_json(read);
  summary["environment"] = environment();
  if (ranks().several()) summary["environment"]["processes"] = ranks().size();
  summary["configuration"] = emit(run.settings);
  return summary;
}

void print_result(FinishedRun const& run, std::filesystem::path const& folder) {
  Row const last = run.values();
  fmt::print("{}: {} steps in {:.1f} s, peak memory of tensors {:.0f} MB\n", folder.string(), run.steps_here, run.seconds_here,
             run.memory_peak / 1e6);
  print_selection(run);
  if (auto const grown = grown_loss(folder)) fmt::print("  {}\n", *grown);
  double const loss = value_or_nan(last, "validation.loss");
  if (!last.values.empty())
    fmt::print("  validation loss {} nat per {}, accuracy {:.2f} %\n", short_number(loss, 4), run.trainer.model().terms().front().name,
               100 * value_or_nan(last, "validation.accuracy"));
  if (double const* const averaged = last.find("validation.ema.loss"))
    fmt::print("  with averaged weights {}\n", short_number(*averaged, 4));
  for (auto const& [name, reference_loss] : run.trainer.data().reference_losses())
    fmt::print("  {:<10} {:.4f} (this run {})\n", name, reference_loss, short_number(loss - reference_loss, 4, true));
  for (auto const& [name, values] : run.trainer.data().facts().baselines)
    for (auto const& [metric, value] : values)
      fmt::print("  {} of {}: {:.4f} (this run {})\n", metric, name, value,
                 short_number(value_or_nan(last, "validation." + metric) - value, 4, true));
}

std::string write_predictions(std::filesystem::path const& folder, Experiment const& settings, Dataset const& data, Model const& model) {
  Index const rows = settings.train.evaluate.batch.value_or(settings.train.batch), context = model.context();
  Index const batches = settings.train.evaluate.count(data.validation_batches(rows, context));
  if (batches == 0 || data.original(0).example == nullptr) return "";
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
  return "predictions.jsonl";
}

}  // namespace heed
