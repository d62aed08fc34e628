#include "experiments/metric/evaluated_batch.hpp"

#include "autograd/ops/reduce.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/metric/probe/attention_maps.hpp"

namespace heed {

template void Registry<MetricKind>::add(MetricKind);

namespace {

/// The parts that targets are generated from.
Batch source_of(Batch const& batch) {
  std::string const part = written_of(batch);
  return {{part, batch[part]}, {"source_lengths", batch.get("source_lengths")}};
}

}  // namespace

HeldOut held_out(Dataset const& data, Index index, Index rows, Index context) {
  HeldOut result{data.validation(index, rows, context), {}, {}};
  for (Index row = 0; row < result.batch.rows(); ++row) {
    result.numbers.push_back(index * rows + row);
    if (auto links = data.original(result.numbers.back()).links) result.links.push_back(std::move(*links));
  }
  return result;
}

EvaluatedBatch::EvaluatedBatch(Dataset const& data, Model const& model, HeldOut const& rows, Pass const& pass, BeamSettings const& search,
                               Metrics const& metrics)
    : data_(data), model_(model), rows_(rows), pass_(pass), search_(search), predictions_(model.run(batch(), pass).predictions) {
  Tensor const wanted = targets().viewed({targets().elements()});
  predictions_.front().head.each_logits([&](Index first, Tensor const& logits) {
    losses_.push_back(cross_entropy(logits, wanted.rows(first, logits.size(0)), 0, -1, 1.0).item());
    Tensor const found = argmax(logits, -1);
    best_.insert(best_.end(), found.data<std::int64_t>().begin(), found.data<std::int64_t>().end());
    for (Metric* const metric : metrics) metric->observe(batch(), first, logits);
  });
}

std::vector<Decoded> const& EvaluatedBatch::decoded() const {
  if (decoded_) return *decoded_;
  auto const& tokenizer = data_.facts().tokenizer;
  Pass pass;
  pass.decoding.choosing = pass_.decoding.choosing;
  pass.decoding.sequences = pass_.decoding.sequences;
  decoded_.emplace();
  for (auto& hypotheses :
       beam(model_, source_of(batch()), *tokenizer->begin(), *tokenizer->end(), longest_targets(batch(), model_), search_, pass))
    decoded_->push_back(std::move(hypotheses.front()));
  return *decoded_;
}

std::vector<AttentionRecord> const& EvaluatedBatch::source_maps() const {
  if (!source_maps_) source_maps_ = heed::source_maps(model_, batch(), pass_);
  return *source_maps_;
}

void measure(Dataset const& data, Model const& model, HeldOut const& rows, Pass const& pass, BeamSettings const& search,
             EvaluatedBatch::Metrics const& metrics) {
  EvaluatedBatch const batch(data, model, rows, pass, search, metrics);
  for (Metric* const metric : metrics) metric->add(batch);
}

std::optional<std::string> unless(bool applies, char const* why) { return applies ? std::nullopt : std::optional<std::string>(why); }

bool predicts(Model const& model, std::string_view term) { return model.terms().front().name == term; }

std::optional<std::string> no_decoding(Dataset const& data, Model const& model) {
  if (written_of(data.signature()).empty()) return "the data give no source to decode a target from";
  auto const& tokenizer = data.facts().tokenizer;
  if (!tokenizer || !tokenizer->begin() || !tokenizer->end()) return "the data do not say where a target ends";
  if (data.validation_batches(1, model.context()) == 0) return "there are no held-out data";
  return unless(model.decode(source_of(data.validation(0, 1, model.context())), {}) != nullptr,
                "the model decodes no target from a source");
}

std::vector<AttentionRecord> source_maps(Model const& model, Batch const& batch, Pass const& pass) {
  auto const to_source = [source = written_of(batch)](AttentionParts const& of) { return of.queries == "inputs" && of.keys == source; };
  return recorded_attention(model, batch, {.weights = true, .mean_over_heads = true, .only_layers = to_source}, pass);
}

std::vector<Index> target_of(Batch const& batch, Index row) {
  Tensor const& inputs = batch["inputs"];
  auto const length = batch.has("lengths") ? at(batch["lengths"].data<std::int64_t>(), row) : inputs.size(1);
  auto const words = inputs.data<std::int64_t>().subspan(static_cast<std::size_t>(row * inputs.size(1)), static_cast<std::size_t>(length));
  return {words.begin() + 1, words.end()};
}

}  // namespace heed
