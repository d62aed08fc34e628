// The cross entropy of the targets that count, per token, byte or word.

#include "autograd/ops/loss.hpp"

#include <cmath>
#include <map>

#include "autograd/ops/reduce.hpp"
#include "experiments/metric/evaluated_batch.hpp"

namespace heed {

namespace {

void add_losses(EvaluatedBatch const& batch, MeanCounts& nats) {
  for (double const loss : batch.losses()) nats.sum += loss;
  nats.count += counted(batch.targets());
}

double perplexity(double nats) { return std::exp(nats); }

Declared<MetricKind> const loss_metric{
    {.info = {"loss", "nat", Better::lower, "mean cross entropy of the validation targets", {.min = 0}},
     .always = 1,
     .make = [](Dataset const&) { return std::make_unique<MeanMetric>("loss", add_losses, &MeanCounts::mean); }}};
Declared<MetricKind> const perplexity_metric{
    {.info = {"perplexity", "", Better::lower, "exp of the loss", {.min = 1}}, .make = [](Dataset const&) {
       return std::make_unique<MeanMetric>("perplexity", add_losses, [](MeanCounts const& nats) { return perplexity(nats.mean()); });
     }}};

std::optional<std::string> no_units(Dataset const& data, Model const&) {
  return unless(data.facts().held_out_units.has_value(),
                "the held-out data are not a text that the tokens cover: its bytes and words cannot be counted");
}

/// The mean cross entropy per token, times the number of tokens per unit (byte or word) of the held-out text: comparable across tokenizers.
/// The number of tokens per unit is that of the whole held-out text, also if only a part of it is evaluated.
MetricKind per_unit(MetricInfo info, double TextUnits::*units, double (*value)(double nats)) {
  auto const make = [name = info.name, units, value](Dataset const& data) {
    auto const text = data.facts().held_out_units.value_or(TextUnits());
    double const tokens = text.tokens / (text.*units);
    return std::make_unique<MeanMetric>(name, add_losses, [=](MeanCounts const& nats) { return value(nats.mean() * tokens); });
  };
  return {.info = std::move(info), .unavailable = no_units, .make = make};
}

Declared<MetricKind> const bits_per_byte_metric{per_unit(
    {"bits_per_byte", "bit", Better::lower, "cross entropy per byte of the held-out text, comparable across tokenizers", {.min = 0}},
    &TextUnits::bytes, [](double nats) { return nats / std::log(2.0); })};
Declared<MetricKind> const perplexity_per_byte_metric{
    per_unit({"perplexity_per_byte", "", Better::lower, "exp of the cross entropy per byte of the held-out text", {.min = 1}},
             &TextUnits::bytes, perplexity)};
Declared<MetricKind> const perplexity_per_word_metric{
    per_unit({"perplexity_per_word",
              "",
              Better::lower,
              "exp of the cross entropy per word of the held-out text; words are separated by blanks, and "
              "the end of a line counts as one, as <eos> in WikiText's counts",
              {.min = 1}},
             &TextUnits::words, perplexity)};

// ---------------------------------------------------------------- terms after the first: next sentences, the auxiliary language-model loss

struct TermSums {
  double loss = 0, right = 0, count = 0;
};
using SumsByTerm = std::map<std::string, TermSums>;

/// Loss and accuracy of each term but the first, by its name.
void add_other_terms(EvaluatedBatch const& batch, SumsByTerm& terms) {
  for (std::size_t i = 1; i < batch.predictions().size(); ++i) {
    auto const& [term, head] = batch.predictions()[i];
    TermSums& sums = terms[term.name];
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

void write_other_terms(SumsByTerm const& terms, Row& row, std::string const& prefix) {
  for (auto const& [name, sums] : terms) {
    row.set(prefix + ".loss_of." + name, sums.loss / sums.count);
    row.set(prefix + ".accuracy_of." + name, sums.right / sums.count);
  }
}

Declared<MetricInfo> const accuracy_of_terms_metric{
    {"validation.accuracy_of.*", "", Better::higher, "share of another term's targets that are the most probable class", fraction}};
Declared<MetricInfo> const averaged_accuracy_of_terms_metric{
    {"validation.ema.accuracy_of.*", "", Better::higher,
     "share of another term's targets that are the most probable class; of averaged weights", fraction}};
Declared<MetricKind> const other_terms_metric{
    {.info = {"loss_of.*", "nat", Better::lower, "mean cross entropy of another term of the loss: next_sentence, token", {.min = 0}},
     .always = 5,
     .unavailable = [](Dataset const&, Model const& model) { return unless(model.terms().size() > 1, "the model's loss has one term"); },
     .make = [](Dataset const&) { return std::make_unique<CountedMetric<SumsByTerm>>(add_other_terms, write_other_terms); }}};

}  // namespace

}  // namespace heed
