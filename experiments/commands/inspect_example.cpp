// What heed inspect shows a model of labelled examples: one example.

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/graph.hpp"
#include "autograd/ops/softmax.hpp"
#include "experiments/commands/inspect.hpp"
#include "experiments/data/examples/dataset.hpp"
#include "experiments/data/view.hpp"
#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/metric/spans.hpp"

namespace heed {

namespace {

struct InspectedExample : Inspected {
  using Inspected::Inspected;

  /// A text of one example, or two, with the model's special tokens; and what the model says of it.
  void show(InspectOptions const& options) override {
    bool const asks = predicts(*run.model, "span");
    if (!tokenizers.inputs) throw ConfigError(run.path.string(), "the run's data have no text");
    if (!asks && run.classes.empty())
      throw ConfigError("--text", fmt::format("{} chooses among options, which inspect does not support", run.path.string()));
    if (asks && !options.target) throw ConfigError("--target", "is needed: the passage that contains the answer");
    Example const example{.first = options.text,
                          .second = options.target.value_or(""),
                          .label = asks ? "" : run.classes.front(),
                          .span = asks,
                          .location = "--text"};
    auto const shown = [&](bool both_orders) {
      Examples examples{{example}, {example}, run.classes, both_orders, {}};
      auto data = examples_data(std::move(examples), tokenizers.inputs, 1, 1);
      return viewed(std::move(data), run.settings.model, 1);
    };
    auto const data = checked("--text", [&] { return shown(run.data["inputs"].sequences > 1 && options.target); });
    batch = data->validation(0, 1, run.model->context());
    NoGrad const quiet;
    auto const predictions = run.model->run(batch, {}).predictions;
    written = asks ? prediction_text(span_guesses(batch, predictions).front(), data->original(0))
                   : prediction_text(predictions.front().head.logits());
    if (batch["inputs"].rank() == 3) batch = shown(false)->validation(0, 1, run.model->context());
    for (char const* const answer : {"label", "span"}) batch.set(answer, {});
  }

 private:
  /// "positive 0.93, negative 0.07"
  std::string prediction_text(Tensor const& logits) const {
    auto const shares = softmax(logits, -1).to_vector();
    std::vector<std::size_t> order(shares.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return shares[i]; });
    auto const share = [&](std::size_t i) { return fmt::format("{} {:.2f}", run.classes[i], shares[i]); };
    return fmt::format("{}", fmt::join(mapped(order, share), ", "));
  }
  std::string prediction_text(SpanGuess const& guess, Original const& original) const {
    auto const text = answer_text(guess, original, batch, 0);
    return text.empty() ? "(no answer)" : text;
  }
};

Declared<Inspection> const example_inspection{inspection_by<InspectedExample>(
    3, [](TrainedModel const& run) { return predicts(*run.model, "label") || predicts(*run.model, "span"); })};

}  // namespace

}  // namespace heed
