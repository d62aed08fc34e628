#include "experiments/metric/evaluated_batch.hpp"

namespace heed {

namespace {

void add_targets(EvaluatedBatch const& batch, MeanCounts& right) {
  Tensor const& targets = batch.targets();
  bool const asks = batch.predictions().front().term.name == "span";  // an answer that was cut off counts as wrong
  auto const wanted = targets.data<std::int64_t>();
  for (std::size_t i = 0; i < wanted.size(); ++i) right.sum += batch.best()[i] == wanted[i] ? 1 : 0;  // never so for −1
  right.count += asks ? static_cast<double>(wanted.size()) : counted(targets);
}

/// Rows without a target do not count.
void add_sequences(EvaluatedBatch const& batch, MeanCounts& right) {
  Tensor const& targets = batch.batch()["targets"];
  auto const wanted = targets.data<std::int64_t>();
  auto const length = static_cast<std::size_t>(targets.size(1));
  for (std::size_t begin = 0; begin < wanted.size(); begin += length) {
    bool any = false, all = true;
    for (std::size_t i = begin; i < begin + length; ++i) {
      if (wanted[i] < 0) continue;
      any = true;
      all = all && batch.best()[i] == wanted[i];
    }
    right.count += any ? 1 : 0;
    right.sum += any && all ? 1 : 0;
  }
}

Declared<MetricKind> const accuracy_metric{
    {.info = {"accuracy", "", Better::higher, "accuracy: share of targets that the model predicts as the most probable token", fraction},
     .always = 2,
     .make = [](Dataset const&) { return std::make_unique<MeanMetric>("accuracy", add_targets, &MeanCounts::mean); }}};

Declared<MetricKind> const exact_metric{
    {.info = {"exact", "", Better::higher, "tasks: share of sequences whose targets are all predicted right", fraction},
     .always = 3,
     .unavailable = [](Dataset const& data, Model const&) -> std::optional<std::string> {
       Signature const given = data.signature();
       if (given.has("targets") && given["targets"].made_by.empty()) return std::nullopt;
       return "the data are not a task whose sequences have answers";
     },
     .make = [](Dataset const&) { return std::make_unique<MeanMetric>("exact", add_sequences, &MeanCounts::mean); }}};

}  // namespace

}  // namespace heed
