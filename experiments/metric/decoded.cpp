#include <limits>

#include "autograd/error.hpp"
#include "experiments/metric/bleu.hpp"
#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/metric/row.hpp"

namespace heed {

namespace {

/// BLEU of decoded targets against the held-out text as written in the data: words missing in the vocabulary count as errors.
class DecodedBleu : public Metric {
 public:
  DecodedBleu(std::string name, BleuSettings const& settings) : name_(std::move(name)), settings_(settings) {}

  void add(EvaluatedBatch const& batch) override {
    auto const& decoded = batch.decoded();
    for (std::size_t row = 0; row < decoded.size(); ++row) {
      auto const reference = batch.data().original(batch.rows().numbers[row]).reference;
      if (!reference) throw Error("BLEU: a held-out sequence has no reference text");
      counts_ += bleu_counts(batch.data().facts().tokenizer->decode(decoded[row].tokens), {*reference}, settings_);
      any_ = true;
    }
  }
  void write(Row& row, std::string const& prefix) const override {
    row.set(prefix + "." + name_, any_ ? bleu(counts_, settings_) : std::numeric_limits<double>::quiet_NaN());
  }

 private:
  std::string name_;
  BleuSettings settings_;
  BleuCounts counts_;
  bool any_ = false;
};

std::optional<std::string> no_text(Dataset const& data, Model const& model) {
  if (auto const unavailable = no_decoding(data, model)) return unavailable;
  if (!data.original(0).reference) return "the data have no text of their targets";
  return std::nullopt;
}

MetricKind kind(std::string const& name, BleuSettings const& settings, std::string const& help) {
  return {.info = {name, "", Better::higher, help, {.min = 0, .max = 100}}, .unavailable = no_text, .make = [=](Dataset const&) {
            return std::make_unique<DecodedBleu>(name, settings);
          }};
}

Declared<MetricKind> const bleu_metric{
    kind("bleu", {.tokens = BleuSettings::Tokens::words},
         "BLEU of the decoded targets, 0 to 100, on the data's own tokens, case-sensitive (sacrebleu's tok:none)")};
Declared<MetricKind> const bleu_13a_metric{kind("bleu.13a", {}, "the same after mteval-v13a's tokenisation, sacrebleu's default")};

class DecodedExact : public Metric {
 public:
  void add(EvaluatedBatch const& batch) override {
    auto const& decoded = batch.decoded();
    for (std::size_t row = 0; row < decoded.size(); ++row) {
      right_ += decoded[row].ended && decoded[row].tokens == target_of(batch.batch(), static_cast<Index>(row)) ? 1 : 0;
      rows_ += 1;
    }
  }
  void write(Row& row, std::string const& prefix) const override { row.set(prefix + ".decoded.exact", right_ / rows_); }

 private:
  double right_ = 0, rows_ = 0;
};

Declared<MetricKind> const decoded_metric{
    {.info = {"decoded.exact", "", Better::higher, "share of sources whose decoded target is entirely right", fraction},
     .unavailable = no_decoding,
     .make = [](Dataset const&) { return std::make_unique<DecodedExact>(); }}};

}  // namespace

}  // namespace heed
