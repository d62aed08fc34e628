#include <cmath>

#include "autograd/error.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/metric/bleu.hpp"
#include "experiments/metric/evaluated_batch.hpp"

namespace heed {

namespace {

/// Counts of decoded targets against the held-out text as written in the data: words missing in the vocabulary count as errors.
void add_text(EvaluatedBatch const& batch, BleuSettings const& settings, std::optional<BleuCounts>& counts) {
  auto const& decoded = batch.decoded();
  for (std::size_t row = 0; row < decoded.size(); ++row) {
    auto const reference = batch.data().original(batch.rows().numbers[row]).reference;
    if (!reference) throw Error("BLEU: a held-out sequence has no reference text");
    if (!counts) counts.emplace();
    *counts += bleu_counts(batch.data().facts().tokenizer->decode(decoded[row].tokens), {*reference}, settings);
  }
}

void add_right(EvaluatedBatch const& batch, MeanCounts& right) {
  auto const& decoded = batch.decoded();
  for (std::size_t row = 0; row < decoded.size(); ++row) {
    right.sum += decoded[row].ended && decoded[row].tokens == target_of(batch.batch(), static_cast<Index>(row)) ? 1 : 0;
    right.count += 1;
  }
}

std::optional<std::string> no_text(Dataset const& data, Model const& model) {
  if (auto const unavailable = no_decoding(data, model)) return unavailable;
  if (!data.original(0).reference) return "the data have no text of their targets";
  return std::nullopt;
}

MetricKind kind(std::string const& name, BleuSettings const& settings, std::string const& help) {
  using Counts = std::optional<BleuCounts>;  // nothing: of no sequence
  auto const add = [settings](EvaluatedBatch const& batch, Counts& counts) { add_text(batch, settings, counts); };
  auto const value = [settings](Counts const& counts) { return counts ? bleu(*counts, settings) : std::nan(""); };
  auto const make = [=](Dataset const&) { return std::make_unique<CountedMetric<Counts>>(name, add, value); };
  return {.info = {name, "", Better::higher, help, {.min = 0, .max = 100}}, .unavailable = no_text, .make = make};
}

Declared<MetricKind> const bleu_metric{
    kind("bleu", {.tokens = BleuSettings::Tokens::words},
         "BLEU of the decoded targets, 0 to 100, on the data's own tokens, case-sensitive (sacrebleu's tok:none)")};
Declared<MetricKind> const bleu_13a_metric{kind("bleu.13a", {}, "the same after mteval-v13a's tokenisation, sacrebleu's default")};

Declared<MetricKind> const decoded_metric{
    {.info = {"decoded.exact", "", Better::higher, "share of sources whose decoded target is entirely right", fraction},
     .unavailable = no_decoding,
     .make = [](Dataset const&) { return std::make_unique<MeanMetric>("decoded.exact", add_right, &MeanCounts::mean); }}};

}  // namespace

}  // namespace heed
