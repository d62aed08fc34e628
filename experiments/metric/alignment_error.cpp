#include <limits>

#include <fmt/format.h>

#include "autograd/ops/elementwise.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/metric/alignment.hpp"
#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/metric/row.hpp"

namespace heed {

namespace {

/// The words of a row's source, without the mark at its end; or the fields of its picture.
std::int64_t places_of_source(Batch const& batch, AttentionRecord const& map, std::size_t row) {
  if (map.of.across > 0) return map.weights.size(2);
  Tensor const& source = batch["source"];
  auto const length = batch.has("source_lengths") ? batch["source_lengths"].data<std::int64_t>()[row] : source.size(1);
  auto const last = static_cast<std::size_t>(static_cast<std::int64_t>(row) * source.size(1) + length - 1);
  return source.data<std::int64_t>()[last] == Tokenizer::eos ? length - 1 : length;
}

/// What is known of a row, in places of the map.
std::vector<Link> known_links(EvaluatedBatch const& seen, AttentionRecord const& map, std::size_t row) {
  auto const& links = seen.rows().links[row];
  if (map.of.across == 0) return links;
  Tensor const& image = seen.batch()["image"];
  return links_to_fields(links, {image.size(2), image.size(3), map.weights.size(2), map.of.across});
}

/// The counts of a batch by where its targets looked.
AlignmentCounts counts_of(EvaluatedBatch const& seen, AttentionRecord const& map) {
  AlignmentCounts counts;
  Tensor const& weights = map.weights;
  for (std::size_t row = 0; row < seen.rows().links.size(); ++row) {
    auto const known = known_links(seen, map, row);
    if (known.empty()) continue;
    Tensor const of_row = weights.rows(static_cast<std::int64_t>(row), 1).viewed({weights.size(1), weights.size(2)});
    counts += alignment_counts(hard_links(of_row, places_of_source(seen.batch(), map, row), known), known);
  }
  return counts;
}

/// Of the mean of all heads of all layers.
AlignmentCounts counts_of_all(EvaluatedBatch const& seen) {
  auto const& maps = seen.source_maps();
  AttentionRecord sum = maps.front();
  for (std::size_t layer = 1; layer < maps.size(); ++layer) sum.weights = sum.weights + maps[layer].weights;
  return counts_of(seen, sum);
}

double error_rate(AlignmentCounts const& counts) {
  return counts.found + counts.sure > 0 ? alignment_error_rate(counts) : std::numeric_limits<double>::quiet_NaN();
}

/// By the mean of all heads of all layers that attend to the source.
class AlignmentError : public Metric {
 public:
  void add(EvaluatedBatch const& seen) override { counts_ += counts_of_all(seen); }
  void write(Row& row, std::string const& prefix) const override { row.set(prefix + ".alignment_error", error_rate(counts_)); }

 private:
  AlignmentCounts counts_;
};

/// The share of the words that look, by the same mean, at a place that they come from.
class Pointing : public Metric {
 public:
  void add(EvaluatedBatch const& seen) override { counts_ += counts_of_all(seen); }
  void write(Row& row, std::string const& prefix) const override {
    row.set(prefix + ".pointing", static_cast<double>(counts_.found_possible) / static_cast<double>(counts_.found));
  }

 private:
  AlignmentCounts counts_;
};

/// By the mean of the heads of each of them.
class LayerAlignmentErrors : public Metric {
 public:
  void add(EvaluatedBatch const& seen) override {
    auto const& maps = seen.source_maps();
    counts_.resize(maps.size());
    for (std::size_t layer = 0; layer < maps.size(); ++layer) counts_[layer] += counts_of(seen, maps[layer]);
  }
  void write(Row& row, std::string const& prefix) const override {
    for (std::size_t layer = 0; layer < counts_.size(); ++layer)
      row.set(fmt::format("{}.alignment_error.layer{}", prefix, layer), error_rate(counts_[layer]));
  }

 private:
  std::vector<AlignmentCounts> counts_;
};

std::optional<std::string> no_alignment(Dataset const& data, Model const& model) {
  if (written_of(data.signature()).empty()) return "the data give no source";
  if (data.validation_batches(1, model.context()) == 0) return "there are no held-out data";
  if (data.links(0, 1, model.context()).empty()) return "the data have no alignment of target words with the source";
  if (source_maps(model, data.validation(0, 1, model.context()), {}).empty()) return "the model has no attention to the source";
  return std::nullopt;
}

Declared<MetricKind> const of_all{{.info = {"alignment_error",
                                            "",
                                            Better::lower,
                                            "alignment error rate of cross-attention, mean over heads and layers; each target word is "
                                            "linked to the source word of its largest weight",
                                            {.least = 0, .greatest = 1}},
                                   .unavailable = no_alignment,
                                   .make = [](Dataset const&) { return std::make_unique<AlignmentError>(); }}};
Declared<MetricKind> const pointing{{.info = {"pointing",
                                              "",
                                              Better::higher,
                                              "share of target words whose largest weight (mean over heads and layers) is on an aligned "
                                              "position: a source word, or the image region of the object",
                                              {.least = 0, .greatest = 1}},
                                     .unavailable = no_alignment,
                                     .make = [](Dataset const&) { return std::make_unique<Pointing>(); }}};
Declared<MetricKind> const of_layers{
    {.info = {"alignment_error.layer*", "", Better::lower, "the same for the heads of one layer", {.least = 0, .greatest = 1}},
     .unavailable = no_alignment,
     .make = [](Dataset const&) { return std::make_unique<LayerAlignmentErrors>(); }}};

}  // namespace

}  // namespace heed
