#include <cmath>

#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/metric/row.hpp"

namespace heed {

namespace {

/// Mean cross entropy of the targets that count.
class Loss : public Metric {
 public:
  void add(EvaluatedBatch const& batch) override {
    for (double const loss : batch.losses()) loss_ += loss;
    targets_ += counted(batch.targets());
  }
  void write(Row& row, std::string const& prefix) const override { row.set(prefix + ".loss", mean()); }

 protected:
  double mean() const { return loss_ / targets_; }

 private:
  double loss_ = 0, targets_ = 0;
};

class Perplexity : public Loss {
 public:
  void write(Row& row, std::string const& prefix) const override { row.set(prefix + ".perplexity", std::exp(mean())); }
};

Declared<MetricKind> const loss_metric{{.info = {"loss", "nat", Better::lower, "mean cross entropy of the validation targets", {.min = 0}},
                                        .always = 1,
                                        .make = [](Dataset const&) { return std::make_unique<Loss>(); }}};
Declared<MetricKind> const perplexity_metric{{.info = {"perplexity", "", Better::lower, "exp of the loss", {.min = 1}},
                                              .make = [](Dataset const&) { return std::make_unique<Perplexity>(); }}};

}  // namespace

}  // namespace heed
