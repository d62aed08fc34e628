#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/metric/row.hpp"

namespace heed {

namespace {

/// Rows without a target do not count.
class Exact : public Metric {
 public:
  void add(EvaluatedBatch const& batch) override {
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
      rows_ += any ? 1 : 0;
      right_ += any && all ? 1 : 0;
    }
  }
  void write(Row& row, std::string const& prefix) const override { row.set(prefix + ".exact", right_ / rows_); }

 private:
  double right_ = 0, rows_ = 0;
};

Declared<MetricKind> const exact_metric{
    {.info = {"exact", "", Better::higher, "tasks: share of sequences whose targets are all predicted right", fraction},
     .always = 3,
     .unavailable = [](Dataset const& data, Model const&) -> std::optional<std::string> {
       Signature const given = data.signature();
       if (given.has("targets") && given["targets"].made_by.empty()) return std::nullopt;
       return "the data are not a task whose sequences have answers";
     },
     .make = [](Dataset const&) { return std::make_unique<Exact>(); }}};

}  // namespace

}  // namespace heed
