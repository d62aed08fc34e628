#include <cmath>

#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/metric/row.hpp"

namespace heed {

namespace {

/// The mean cross entropy per token, times the number of tokens per unit (byte or word) of the held-out text: comparable across tokenizers.
/// The number of tokens per unit is that of the whole held-out text, also if only a part of it is evaluated.
class LossPerUnit : public Metric {
 public:
  LossPerUnit(double tokens_a_unit, char const* name, double (*value)(double nats)) : tokens_(tokens_a_unit), name_(name), value_(value) {}

  void add(EvaluatedBatch const& batch) override {
    for (double const loss : batch.losses()) loss_ += loss;
    targets_ += counted(batch.batch()["targets"]);
  }
  void write(Row& row, std::string const& prefix) const override { row.set(prefix + "." + name_, value_(loss_ / targets_ * tokens_)); }

 private:
  double tokens_;
  char const* name_;
  double (*value_)(double);
  double loss_ = 0, targets_ = 0;
};

std::optional<std::string> no_units(Dataset const& data, Model const&) {
  if (data.held_out_units()) return std::nullopt;
  return "the held-out data are not a text that the tokens cover: its bytes and words cannot be counted";
}

Declared<MetricKind> const bits_per_byte_metric{
    {.info =
         {"bits_per_byte", "bit", Better::lower, "cross entropy per byte of the held-out text, comparable across tokenizers", {.min = 0}},
     .unavailable = no_units,
     .make = [](Dataset const& data) {
       auto const units = data.held_out_units().value_or(TextUnits());
       return std::make_unique<LossPerUnit>(units.tokens / units.bytes, "bits_per_byte", [](double nats) { return nats / std::log(2.0); });
     }}};

Declared<MetricKind> const perplexity_per_byte_metric{
    {.info = {"perplexity_per_byte", "", Better::lower, "exp of the cross entropy per byte of the held-out text", {.min = 1}},
     .unavailable = no_units,
     .make = [](Dataset const& data) {
       auto const units = data.held_out_units().value_or(TextUnits());
       return std::make_unique<LossPerUnit>(units.tokens / units.bytes, "perplexity_per_byte", [](double nats) { return std::exp(nats); });
     }}};

Declared<MetricKind> const perplexity_per_word_metric{
    {.info = {"perplexity_per_word",
              "",
              Better::lower,
              "exp of the cross entropy per word of the held-out text; words are separated by blanks, and "
              "the end of a line counts as one, as <eos> in WikiText's counts",
              {.min = 1}},
     .unavailable = no_units,
     .make = [](Dataset const& data) {
       auto const units = data.held_out_units().value_or(TextUnits());
       return std::make_unique<LossPerUnit>(units.tokens / units.words, "perplexity_per_word", [](double nats) { return std::exp(nats); });
     }}};

}  // namespace

}  // namespace heed
