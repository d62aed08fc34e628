#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/metric/row.hpp"

namespace heed {

namespace {

class Accuracy : public Metric {
 public:
  void add(EvaluatedBatch const& batch) override {
    Tensor const& targets = batch.targets();
    bool const asks = batch.predictions().front().term.name == "span";  // an answer that was cut off counts as wrong
    auto const wanted = targets.data<std::int64_t>();
    for (std::size_t i = 0; i < wanted.size(); ++i) right_ += batch.best()[i] == wanted[i] ? 1 : 0;  // never so for −1
    targets_ += asks ? static_cast<double>(wanted.size()) : counted(targets);
  }
  void write(Row& row, std::string const& prefix) const override { row.set(prefix + ".accuracy", right_ / targets_); }

 private:
  double right_ = 0, targets_ = 0;
};

Declared<MetricKind> const accuracy_metric{
    {.info = {"accuracy", "", Better::higher, "accuracy: share of targets that the model predicts as the most probable token", fraction},
     .always = 2,
     .make = [](Dataset const&) { return std::make_unique<Accuracy>(); }}};

}  // namespace

}  // namespace heed
