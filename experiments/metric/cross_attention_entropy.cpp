// The entropy of cross-attention.

#include <cmath>

#include "experiments/metric/evaluated_batch.hpp"

namespace heed {

namespace {

/// The mean of −Σ_j a_j log a_j over the positions whose targets count and all cross-attention layers; heads are averaged first.
void add_entropies(EvaluatedBatch const& batch, MeanCounts& entropy) {
  auto const targets = batch.batch()["targets"].data<std::int64_t>();
  for (AttentionRecord const& map : batch.source_maps()) {
    auto const weights = map.weights.to_vector();
    std::size_t const keys = weights.size() / targets.size();
    for (std::size_t query = 0; query < targets.size(); ++query) {
      if (targets[query] < 0) continue;
      entropy.count += 1;
      for (std::size_t j = query * keys; j < (query + 1) * keys; ++j) entropy.sum -= weights[j] > 0 ? weights[j] * std::log(weights[j]) : 0;
    }
  }
}

std::optional<std::string> no_attention(Dataset const& data, Model const& model) {
  if (written_of(data.signature()).empty()) return "the data give no source";
  if (data.validation_batches(1, model.context()) == 0) return "there are no held-out data";
  if (source_maps(model, data.validation(0, 1, model.context()), {}).empty()) return "the model has no attention to the source";
  return std::nullopt;
}

Declared<MetricKind> const cross_attention_entropy_metric{
    {.info = {"cross_attention_entropy", "nat", std::nullopt, "mean entropy of cross-attention weights", {.min = 0}},
     .unavailable = no_attention,
     .make = [](Dataset const&) { return std::make_unique<MeanMetric>("cross_attention_entropy", add_entropies, &MeanCounts::mean); }}};

}  // namespace

}  // namespace heed
