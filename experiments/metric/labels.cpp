// Metrics of predicted labels: F1 and Matthews correlation.

#include "experiments/metric/labels.hpp"

#include <cmath>

#include "experiments/metric/evaluated_batch.hpp"

namespace heed {

namespace {

double divided(double a, double b) { return b == 0 ? 0 : a / b; }

/// How often each class is right, how often each is predicted, and how often both together.
struct Totals {
  explicit Totals(ConfusionMatrix const& counts) : right(counts.size()), predicted(counts.size()) {
    for (std::size_t r = 0; r < counts.size(); ++r)
      for (std::size_t s = 0; s < counts.size(); ++s) {
        auto const count = static_cast<double>(counts[r][s]);
        right[r] += count;
        predicted[s] += count;
        all += count;
        if (r == s) hits += count;
      }
  }
  std::vector<double> right, predicted;
  double all = 0, hits = 0;
};

std::optional<std::string> no_classes(Dataset const& data, Model const& model) {
  return unless(predicts(model, "label") && !data.facts().classes.empty(), "the model does not predict classes");
}

std::optional<std::string> no_two(Dataset const& data, Model const& model) {
  if (auto unavailable = no_classes(data, model)) return unavailable;
  return unless(data.facts().classes.size() == 2, "there are not two classes");
}

/// A measure of the confusion matrix of all rows.
MetricKind of_labels(MetricInfo info, int order, double (*measure)(ConfusionMatrix const&),
                     std::optional<std::string> (*unavailable)(Dataset const&, Model const&)) {
  auto const value = [measure](ConfusionMatrix const& counts) { return Totals(counts).all > 0 ? measure(counts) : std::nan(""); };
  auto const make = [name = info.name, value](Dataset const& data) {
    auto const classes = data.facts().classes.size();
    return std::make_unique<CountedMetric<ConfusionMatrix>>(name, add_labels, value, ConfusionMatrix(classes, std::vector<Index>(classes)));
  };
  return {.info = std::move(info), .always = order, .unavailable = unavailable, .make = make};
}

Declared<MetricKind> const f1_metric{of_labels(
    {"f1", "", Better::higher, "F1 of the second of two classes: 2 · precision · recall / (precision + recall)", fraction}, 6,
    [](ConfusionMatrix const& counts) { return f1(counts, 1); }, no_two)};
Declared<MetricKind> const macro_metric{
    of_labels({"macro_f1", "", Better::higher, "the mean of F1 over the classes", fraction}, 7, macro_f1, no_classes)};
Declared<MetricKind> const matthews_metric{
    of_labels({"matthews", "", Better::higher, "Matthews correlation of labels and predictions (Matthews 1975)", {.min = -1, .max = 1}}, 8,
              matthews_correlation, no_classes)};

}  // namespace

void add_labels(EvaluatedBatch const& batch, ConfusionMatrix& counts) {
  auto const right = batch.targets().data<std::int64_t>();
  for (std::size_t row = 0; row < right.size(); ++row)
    if (right[row] >= 0) ++at(at(counts, right[row]), batch.best()[row]);
}

double f1(ConfusionMatrix const& counts, std::size_t of) {
  Totals const totals(counts);
  return divided(2 * static_cast<double>(counts[of][of]), totals.right[of] + totals.predicted[of]);
}

double macro_f1(ConfusionMatrix const& counts) {
  Totals const totals(counts);
  double sum = 0, classes = 0;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    if (totals.right[c] + totals.predicted[c] == 0) continue;
    sum += f1(counts, c);
    ++classes;
  }
  return divided(sum, classes);
}

double matthews_correlation(ConfusionMatrix const& counts) {
  Totals const totals(counts);
  double both = 0, right = 0, predicted = 0;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    both += totals.right[c] * totals.predicted[c];
    right += totals.right[c] * totals.right[c];
    predicted += totals.predicted[c] * totals.predicted[c];
  }
  double const squared = totals.all * totals.all;
  return divided(totals.hits * totals.all - both, std::sqrt((squared - predicted) * (squared - right)));
}

}  // namespace heed
