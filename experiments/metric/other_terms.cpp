// For losses with several terms, those after the first: next sentences, the auxiliary language-model loss.

#include <map>

#include "autograd/ops/loss.hpp"
#include "autograd/ops/reduce.hpp"
#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/metric/row.hpp"

namespace heed {

namespace {

/// Loss and accuracy of each term but the first, by its name.
class OtherTerms : public Metric {
 public:
  void add(EvaluatedBatch const& batch) override {
    for (std::size_t i = 1; i < batch.predictions().size(); ++i) {
      auto const& [term, head] = batch.predictions()[i];
      TermSums& sums = terms_[term.name];
      Tensor const& whole = batch.batch()[term.targets];
      Tensor const targets = whole.viewed({whole.elements()});
      head.each_logits([&](Index first, Tensor const& logits) {
        Tensor const wanted = targets.rows(first, logits.size(0)), best = argmax(logits, -1);
        sums.loss += cross_entropy(logits, wanted, 0, -1, 1.0).item();
        auto const found = best.data<std::int64_t>(), right = wanted.data<std::int64_t>();
        for (std::size_t j = 0; j < found.size(); ++j) sums.right += found[j] == right[j] ? 1 : 0;
      });
      sums.count += counted(whole);
    }
  }
  void write(Row& row, std::string const& prefix) const override {
    for (auto const& [name, sums] : terms_) {
      row.set(prefix + ".loss_of." + name, sums.loss / sums.count);
      row.set(prefix + ".accuracy_of." + name, sums.right / sums.count);
    }
  }

 private:
  struct TermSums {
    double loss = 0, right = 0, count = 0;
  };
  std::map<std::string, TermSums> terms_;
};

Declared<MetricInfo> const accuracy_of_terms_metric{
    {"validation.accuracy_of.*", "", Better::higher, "share of another term's targets that are the most probable class", fraction}};
Declared<MetricInfo> const averaged_accuracy_of_terms_metric{
    {"validation.ema.accuracy_of.*", "", Better::higher,
     "share of another term's targets that are the most probable class; of averaged weights", fraction}};
Declared<MetricKind> const other_terms_metric{
    {.info = {"loss_of.*", "nat", Better::lower, "mean cross entropy of another term of the loss: next_sentence, token", {.min = 0}},
     .always = 5,
     .unavailable = [](Dataset const&, Model const& model) -> std::optional<std::string> {
       if (model.terms().size() > 1) return std::nullopt;
       return "the model's loss has one term";
     },
     .make = [](Dataset const&) { return std::make_unique<OtherTerms>(); }}};

}  // namespace

}  // namespace heed
