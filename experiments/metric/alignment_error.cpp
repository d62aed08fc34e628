#include <limits>

#include <fmt/format.h>

#include "autograd/operations.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/metric/alignment.hpp"
#include "experiments/metric/row.hpp"
#include "experiments/metric/seen.hpp"

namespace heed {

namespace {

/// The words of a row's source, without the mark at its end.
std::int64_t words_of_source(Batch const& batch, std::size_t row) {
  Tensor const& source = batch["source"];
  auto const length = batch.has("source_lengths") ? batch["source_lengths"].data<std::int64_t>()[row] : source.size(1);
  auto const last = static_cast<std::size_t>(static_cast<std::int64_t>(row) * source.size(1) + length - 1);
  return source.data<std::int64_t>()[last] == Tokenizer::eos ? length - 1 : length;
}

/// The counts of a batch by the weights [B, T, S] of where its targets looked.
AlignmentCounts counts_of(Seen const& seen, Tensor const& weights) {
  AlignmentCounts counts;
  auto const& links = seen.rows().links;
  for (std::size_t row = 0; row < links.size(); ++row) {
    if (links[row].empty()) continue;
    Tensor const of_row = weights.rows(static_cast<std::int64_t>(row), 1).viewed({weights.size(1), weights.size(2)});
    counts += alignment_counts(hard_links(of_row, words_of_source(seen.batch(), row), links[row]), links[row]);
  }
  return counts;
}

double error_rate(AlignmentCounts const& counts) {
  return counts.found + counts.sure > 0 ? alignment_error_rate(counts) : std::numeric_limits<double>::quiet_NaN();
}

/// By the mean of all heads of all layers that look at the source.
class AlignmentError : public Metric {
 public:
  void add(Seen const& seen) override {
    auto const& maps = seen.source_maps();
    Tensor sum = maps.front();
    for (std::size_t layer = 1; layer < maps.size(); ++layer) sum = sum + maps[layer];
    counts_ += counts_of(seen, sum);
  }
  void write(Row& row, std::string const& prefix) const override { row.set(prefix + ".alignment_error", error_rate(counts_)); }

 private:
  AlignmentCounts counts_;
};

/// By the mean of the heads of each of them.
class LayerAlignmentErrors : public Metric {
 public:
  void add(Seen const& seen) override {
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

std::optional<std::string> lacks_alignment(Dataset const& data, Model const& model) {
  if (!data.gives().has("source")) return "the data give no source";
  if (data.validation_batches(1, model.context()) == 0) return "there are no held-out data";
  if (data.links(0, 1, model.context()).empty()) return "the data do not know which words of the target come from which of the source";
  if (source_maps(model, data.validation(0, 1, model.context()), {}).empty()) return "the model has no attention to the source";
  return std::nullopt;
}

DeclaredMetricKind const of_all{
    {.info = {"alignment_error", "", Better::lower,
              "alignment error rate of attention to the source, the mean of all heads and layers: each word looks at its largest weight"},
     .lacks = lacks_alignment,
     .make = [](Dataset const&) { return std::make_unique<AlignmentError>(); }}};
DeclaredMetricKind const of_layers{{.info = {"alignment_error.layer*", "", Better::lower, "the same of one layer's heads"},
                                    .lacks = lacks_alignment,
                                    .make = [](Dataset const&) { return std::make_unique<LayerAlignmentErrors>(); }}};

}  // namespace

}  // namespace heed
