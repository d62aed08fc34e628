#include <cmath>

#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/metric/row.hpp"

namespace heed {

namespace {

/// The mean cross entropy per token, times the number of tokens per unit (byte or word) of the held-out text: comparable across tokenizers.
/// The number of tokens per unit is that of the whole held-out text, also if only a part of it is evaluated.
class LossPerUnit : public Metric {
 public:
  LossPerUnit(double tokens_a_unit, std::string name, double (*value)(double nats))
      : tokens_(tokens_a_unit), name_(std::move(name)), value_(value) {}

  void add(EvaluatedBatch const& batch) override {
    for (double const loss : batch.losses()) loss_ += loss;
    targets_ += counted(batch.batch()["targets"]);
  }
  void write(Row& row, std::string const& prefix) const override { row.set(prefix + "." + name_, value_(loss_ / targets_ * tokens_)); }

 private:
  double tokens_;
  std::string name_;
  double (*value_)(double);
  double loss_ = 0, targets_ = 0;
};

std::optional<std::string> no_units(Dataset const& data, Model const&) {
  if (data.facts().held_out_units) return std::nullopt;
  return "the held-out data are not a text that the tokens cover: its bytes and words cannot be counted";
}

/// `units`: those that the loss is given for.
MetricKind per_unit(MetricInfo info, double TextUnits::*units, double (*value)(double nats)) {
  auto const make = [name = info.name, units, value](Dataset const& data) {
    auto const text = data.facts().held_out_units.value_or(TextUnits());
    return std::make_unique<LossPerUnit>(text.tokens / (text.*units), name, value);
  };
  return {.info = std::move(info), .unavailable = no_units, .make = make};
}

Declared<MetricKind> const bits_per_byte_metric{per_unit(
    {"bits_per_byte", "bit", Better::lower, "cross entropy per byte of the held-out text, comparable across tokenizers", {.min = 0}},
    &TextUnits::bytes, [](double nats) { return nats / std::log(2.0); })};
Declared<MetricKind> const perplexity_per_byte_metric{
    per_unit({"perplexity_per_byte", "", Better::lower, "exp of the cross entropy per byte of the held-out text", {.min = 1}},
             &TextUnits::bytes, [](double nats) { return std::exp(nats); })};
Declared<MetricKind> const perplexity_per_word_metric{
    per_unit({"perplexity_per_word",
              "",
              Better::lower,
              "exp of the cross entropy per word of the held-out text; words are separated by blanks, and "
              "the end of a line counts as one, as <eos> in WikiText's counts",
              {.min = 1}},
             &TextUnits::words, [](double nats) { return std::exp(nats); })};

}  // namespace

}  // namespace heed
