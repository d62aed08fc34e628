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
     .unavailable =
         [](Dataset const& data, Model const&) {
           Signature const given = data.signature();
           return unless(given.has("targets") && given["targets"].made_by.empty(), "the data are not a task whose sequences have answers");
         },
     .make = [](Dataset const&) { return std::make_unique<MeanMetric>("exact", add_sequences, &MeanCounts::mean); }}};

/// Accuracy of the category: a prediction is right if the most probable of the tokens with a category has the target's.
class Groups : public Metric {
 public:
  explicit Groups(TargetGroups groups) : groups_(std::move(groups)), right_(groups_.names.size()) {}

  void observe(Batch const& batch, Index first, Tensor const& logits) override {
    if (!batch.has("groups")) return;
    auto const here = [&](Tensor const& all) { return all.viewed({all.elements()}).rows(first, logits.size(0)).data<std::int64_t>(); };
    auto const group = here(batch["groups"]), wanted = here(batch["targets"]);
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (group[i] < 0) continue;
      auto const found = best(logits.rows(static_cast<Index>(i), 1).to_vector());
      MeanCounts& right = at(right_, group[i]);
      right.count += 1;
      right.sum += category(found) == category(static_cast<std::size_t>(wanted[i])) ? 1 : 0;
    }
  }
  void add(EvaluatedBatch const&) override {}
  void write(Row& row, std::string const& prefix) const override {
    for (std::size_t i = 0; i < right_.size(); ++i)
      if (right_[i].count > 0) row.set(prefix + ".accuracy." + groups_.names[i], right_[i].mean());
  }

 private:
  Index category(std::size_t token) const { return groups_.categories[token]; }
  std::size_t best(std::vector<double> const& scores) const {
    std::size_t found = scores.size();
    for (std::size_t token = 0; token < scores.size(); ++token)
      if (category(token) >= 0 && (found == scores.size() || scores[token] > scores[found])) found = token;
    return found;
  }

  TargetGroups groups_;
  std::vector<MeanCounts> right_;
};

Declared<MetricKind> const group_accuracy_metric{
    {.info = {"accuracy.*", "", Better::higher, "accuracy within a group of targets (grammar: verbs by distance from their subject)",
              fraction},
     .always = 4,
     .unavailable = [](Dataset const& data,
                       Model const&) { return unless(!data.facts().groups.names.empty(), "the data define no groups of targets"); },
     .make = [](Dataset const& data) { return std::make_unique<Groups>(data.facts().groups); }}};

}  // namespace

}  // namespace heed
