#include "experiments/metric/alignment_error.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/ops/elementwise.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/metric/evaluated_batch.hpp"

namespace heed {

AlignmentCounts& AlignmentCounts::operator+=(AlignmentCounts const& other) {
  found += other.found;
  sure += other.sure;
  found_sure += other.found_sure;
  found_possible += other.found_possible;
  return *this;
}

AlignmentCounts alignment_counts(std::vector<Link> const& found, std::vector<Link> const& known) {
  using WordPairs = std::set<std::pair<Index, Index>>;
  WordPairs all, sure, possible;
  for (auto const& link : found) all.emplace(link.target, link.source);
  for (auto const& link : known) {
    possible.emplace(link.target, link.source);
    if (link.sure) sure.emplace(link.target, link.source);
  }
  auto const within = [&](WordPairs const& linked) {
    return std::ranges::count_if(all, [&](auto const& link) { return linked.contains(link); });
  };
  return {std::ssize(all), std::ssize(sure), within(sure), within(possible)};
}

double alignment_error_rate(AlignmentCounts const& counts) {
  if (counts.found + counts.sure == 0) throw Error("alignment error rate: there are no links");
  return 1 - to_double(counts.found_sure + counts.found_possible) / to_double(counts.found + counts.sure);
}

std::vector<Link> hard_links(Tensor const& weights, Index sources, std::vector<Link> const& known) {
  if (weights.rank() != 2 || sources < 1 || sources > weights.size(1))
    throw Error(
        fmt::format("hard alignment: weights {} of {} sources; wants [targets, sources or more]", to_string(weights.shape()), sources));
  std::set<Index> targets;
  for (auto const& link : known) targets.insert(link.target);
  std::vector<Link> links;
  for (auto const target : targets) {
    if (target < 0 || target >= weights.size(0))
      throw Error(fmt::format("hard alignment: weights {} have no target {}", to_string(weights.shape()), target));
    auto row = weights.rows(target, 1).to_vector();
    row.resize(static_cast<std::size_t>(sources));
    if (std::ranges::any_of(row, [](double weight) { return std::isnan(weight); }))
      throw Error(fmt::format("hard alignment: a weight of target {} is no number", target));
    links.push_back({target, std::ranges::max_element(row) - row.begin()});
  }
  return links;
}

std::vector<Link> links_to_fields(std::vector<Link> const& links, PictureFields const& picture) {
  std::map<std::pair<Index, Index>, bool> sure;
  for (auto const& link : links) sure[{link.target, picture.at(link.source / picture.width, link.source % picture.width)}] |= link.sure;
  return mapped(sure, [](auto const& field) { return Link{field.first.first, field.first.second, field.second}; });
}

namespace {

/// The words of a sequence's source without the end mark; or the fields of its picture.
Index source_length(Batch const& batch, AttentionRecord const& map, std::size_t row) {
  if (map.of.across > 0) return map.weights.size(2);
  Tensor const& source = batch["source"];
  auto const length = batch.has("source_lengths") ? batch["source_lengths"].data<std::int64_t>()[row] : source.size(1);
  auto const last = static_cast<std::size_t>(static_cast<Index>(row) * source.size(1) + length - 1);
  return source.data<std::int64_t>()[last] == Tokenizer::eos ? length - 1 : length;
}

/// The known links of a row, as positions in the map.
std::vector<Link> known_links(EvaluatedBatch const& batch, AttentionRecord const& map, std::size_t row) {
  auto const& links = batch.rows().links[row];
  if (map.of.across == 0) return links;
  Tensor const& image = batch.batch()["image"];
  return links_to_fields(links, {image.size(2), image.size(3), map.weights.size(2), map.of.across});
}

AlignmentCounts counts_of(EvaluatedBatch const& batch, AttentionRecord const& map) {
  AlignmentCounts counts;
  Tensor const& weights = map.weights;
  for (std::size_t row = 0; row < batch.rows().links.size(); ++row) {
    auto const known = known_links(batch, map, row);
    if (known.empty()) continue;
    Tensor const of_row = weights.rows(static_cast<Index>(row), 1).viewed({weights.size(1), weights.size(2)});
    counts += alignment_counts(hard_links(of_row, source_length(batch.batch(), map, row), known), known);
  }
  return counts;
}

double error_rate(AlignmentCounts const& counts) { return counts.found + counts.sure > 0 ? alignment_error_rate(counts) : std::nan(""); }

/// The share of the words whose largest weight is at a position that they come from.
double pointing(AlignmentCounts const& counts) { return to_double(counts.found_possible) / to_double(counts.found); }

/// By the mean of all heads of all layers that attend to the source.
void add_mean_map(EvaluatedBatch const& batch, AlignmentCounts& counts) {
  auto const& maps = batch.source_maps();
  AttentionRecord sum = maps.front();
  for (std::size_t layer = 1; layer < maps.size(); ++layer) sum.weights = sum.weights + maps[layer].weights;
  counts += counts_of(batch, sum);
}

/// By the mean of the heads of each of them.
using LayerCounts = std::vector<AlignmentCounts>;

void add_layers(EvaluatedBatch const& batch, LayerCounts& counts) {
  auto const& maps = batch.source_maps();
  counts.resize(maps.size());
  for (std::size_t layer = 0; layer < maps.size(); ++layer) counts[layer] += counts_of(batch, maps[layer]);
}

void write_layers(LayerCounts const& counts, Row& row, std::string const& prefix) {
  for (std::size_t layer = 0; layer < counts.size(); ++layer)
    row.set(fmt::format("{}.alignment_error.layer{}", prefix, layer), error_rate(counts[layer]));
}

/// `aligned`: whether words of the targets must be aligned with the source.
template <bool aligned>
std::optional<std::string> no_attention(Dataset const& data, Model const& model) {
  if (written_of(data.signature()).empty()) return "the data give no source";
  if (data.validation_batches(1, model.context()) == 0) return "there are no held-out data";
  if (aligned && !data.original(0).links) return "the data have no alignment of target words with the source";
  return unless(!source_maps(model, data.validation(0, 1, model.context()), {}).empty(), "the model has no attention to the source");
}

Declared<MetricKind> const alignment_error_metric{
    {.info = {"alignment_error", "", Better::lower,
              "alignment error rate of cross-attention, mean over heads and layers; each target word is "
              "linked to the source word of its largest weight",
              fraction},
     .unavailable = no_attention<true>,
     .make = [](Dataset const&) { return std::make_unique<CountedMetric<AlignmentCounts>>("alignment_error", add_mean_map, error_rate); }}};
Declared<MetricKind> const pointing_metric{
    {.info = {"pointing", "", Better::higher,
              "share of target words whose largest weight (mean over heads and layers) is on an aligned "
              "position: a source word, or the image region of the object",
              fraction},
     .unavailable = no_attention<true>,
     .make = [](Dataset const&) { return std::make_unique<CountedMetric<AlignmentCounts>>("pointing", add_mean_map, pointing); }}};
Declared<MetricKind> const layer_alignment_error_metric{
    {.info = {"alignment_error.layer*", "", Better::lower, "the same for the heads of one layer", fraction},
     .unavailable = no_attention<true>,
     .make = [](Dataset const&) { return std::make_unique<CountedMetric<LayerCounts>>(add_layers, write_layers); }}};

// ---------------------------------------------------------------- entropy

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

Declared<MetricKind> const cross_attention_entropy_metric{
    {.info = {"cross_attention_entropy", "nat", std::nullopt, "mean entropy of cross-attention weights", {.min = 0}},
     .unavailable = no_attention<false>,
     .make = [](Dataset const&) { return std::make_unique<MeanMetric>("cross_attention_entropy", add_entropies, &MeanCounts::mean); }}};

}  // namespace

}  // namespace heed
