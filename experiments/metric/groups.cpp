#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/metric/row.hpp"

namespace heed {

namespace {

/// Accuracy of the category: a prediction is right if the most probable of the tokens with a category has the target's.
class Groups : public Metric {
 public:
  explicit Groups(TargetGroups groups) : groups_(std::move(groups)), shares_(groups_.names.size()) {}

  void observe(Batch const& batch, Index first, Tensor const& logits) override {
    if (!batch.has("groups")) return;
    auto const here = [&](Tensor const& all) { return all.viewed({all.elements()}).rows(first, logits.size(0)).data<std::int64_t>(); };
    auto const group = here(batch["groups"]), wanted = here(batch["targets"]);
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (group[i] < 0) continue;
      auto const found = best(logits.rows(static_cast<Index>(i), 1).to_vector());
      AnswerShare& share = at(shares_, group[i]);
      share.all += 1;
      share.right += category(found) == category(static_cast<std::size_t>(wanted[i])) ? 1 : 0;
    }
  }
  void add(EvaluatedBatch const&) override {}
  void write(Row& row, std::string const& prefix) const override {
    for (std::size_t i = 0; i < shares_.size(); ++i)
      if (shares_[i].all > 0) row.set(prefix + ".accuracy." + groups_.names[i], shares_[i].right / shares_[i].all);
  }

 private:
  struct AnswerShare {
    double right = 0, all = 0;
  };

  Index category(std::size_t token) const { return groups_.categories[token]; }
  std::size_t best(std::vector<double> const& scores) const {
    std::size_t found = scores.size();
    for (std::size_t token = 0; token < scores.size(); ++token)
      if (category(token) >= 0 && (found == scores.size() || scores[token] > scores[found])) found = token;
    return found;
  }

  TargetGroups groups_;
  std::vector<AnswerShare> shares_;
};

Declared<MetricKind> const group_accuracy_metric{
    {.info = {"accuracy.*", "", Better::higher, "accuracy within a group of targets (grammar: verbs by distance from their subject)",
              fraction},
     .always = 4,
     .unavailable = [](Dataset const& data, Model const&) -> std::optional<std::string> {
       if (!data.facts().groups.names.empty()) return std::nullopt;
       return "the data define no groups of targets";
     },
     .make = [](Dataset const& data) { return std::make_unique<Groups>(data.facts().groups); }}};

}  // namespace

}  // namespace heed
