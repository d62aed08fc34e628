// What softmax does to gradients as d_k grows: logits s q·k_j of one query and n keys, s = 1 (none), 1/√d_k (rsqrt) or 1/d_k (inverse).
//
// Queries and keys are drawn, multiplied and put through softmax in blocks: some queries meet some keys in groups of n, which gives many
// rows from few random numbers. Rows of a block share queries or keys, so that a mean's standard error is estimated from the block means;
// blocks are independent. Each row also counts with its keys negated, since all laws here are symmetric about 0. A cell of the grid draws
// blocks until every standard error is small enough. Conditional distributions are not used for sampling: that the logits of Gaussian keys
// given q are N(0, |q|²) belongs to the theory that is tested.

#include "experiments/study/softmax_scaling.hpp"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "autograd/parallel.hpp"
#include "experiments/study/layers.hpp"
#include "experiments/study/samples.hpp"
#include "experiments/study/trained.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

namespace {

/// One head of a trained model: all its sequences, nothing more to draw.
std::vector<ScalingCell> measure_head(TrainedHead const& head, Index n, SoftmaxScalingSettings const& settings) {
  BlockShape const shape = head.shape(n);
  if (shape.keys < n || shape.rows() == 0) return {};
  Wanted wanted;
  auto const scales = settings.scales();
  for (auto const& scale : scales) wanted.scales.push_back(fixed_scale(scale, static_cast<double>(head.width)).value());
  std::vector<std::vector<BlockMeans>> blocks(head.sequences.size());
  parallel_for(static_cast<Index>(blocks.size()), 1e6, [&](Index begin, Index end) {
    for (auto b = static_cast<std::size_t>(begin); b < static_cast<std::size_t>(end); ++b)
      blocks[b] = measure_block(centred_products(head.sequences[b], shape), shape, wanted);
  });
  std::vector<ScalingCell> cells;
  for (std::size_t k = 0; k < scales.size(); ++k) {
    Samples samples;
    for (auto const& block : blocks) samples.add(block[k], true);
    samples.summarise(cells.emplace_back());
    samples.add_spread(cells.back());
    cells.back().distribution = head.name;
    cells.back().scale = scales[k];
    cells.back().d_k = head.width;
    cells.back().keys = n;
  }
  return cells;
}

/// Layers of Transformers that are not trained; fewer draws for a quick look.
std::vector<ScalingCell> measure_layers(SoftmaxScalingSettings const& settings, std::string const& place, std::string const& scale, Index d,
                                        std::uint64_t seed) {
  auto const found = gradients_of_layers({settings.layers, settings.quick ? 4 : 16}, place, scale, d, seed);
  std::vector<ScalingCell> cells;
  for (std::size_t layer = 0; layer < found.norms.size(); ++layer) {
    ScalingCell& cell = cells.emplace_back(ScalingCell{fmt::format("{}-norm layer{}", place, layer), scale, d, LayerDraws::context});
    at(cell.values, Quantity::query_weights_gradient) = measured_mean(found.norms[layer]);
  }
  return cells;
}

Declared<StudyKind> const softmax_scaling_study{
    study_kind("softmax_scaling", "saturation of softmax as d_k grows, with and without a scale, compared with theory", softmax_scaling,
               softmax_scaling_page)};

}  // namespace

Study softmax_scaling(SoftmaxScalingSettings const& given, StudyContext const& context) {
  auto const settings = std::make_shared<SoftmaxScalingSettings const>(given.looked_at());
  auto const theory = std::make_shared<GridTheory>(*settings);
  auto const seed = context.seed;
  auto const widths = integers(settings->d_k), numbers_of_keys = integers(settings->keys);
  Study study;
  auto const add = [&study](std::string name, std::function<std::vector<ScalingCell>()> measure) {
    study.cells.push_back({std::move(name), [measure = std::move(measure)] { return rows_of(measure()); }});
  };
  for (auto const& distribution : settings->distribution)
    for (auto const d : widths)
      for (auto const keys : numbers_of_keys)
        add(fmt::format("{}, d_k {}, {} keys", distribution, d, keys), [=] {
          auto cells = sample_cells(*settings, distribution, d, keys, seed);
          theory->add_to(cells);
          return cells;
        });
  if (settings->run) {
    for (auto& each : trained_heads(*settings->run, settings->sequences, context, study.read)) {
      auto const head = std::make_shared<TrainedHead const>(std::move(each));
      for (auto const keys : numbers_of_keys)
        add(fmt::format("{}, {} keys", head->name, keys), [=] { return measure_head(*head, keys, *settings); });
    }
  }
  // At every second d_k.
  for (std::size_t i = 0; i < widths.size() && settings->layers > 0; i += widths.size() > 6 ? 2 : 1) {
    for (auto const& scale : settings->scales()) {
      if (scale != "none" && scale != "rsqrt") continue;
      for (std::string const place : {"pre", "post"})
        add(fmt::format("{}-norm layers, {}, d_k {}", place, scale, widths[i]),
            [=, d = widths[i]] { return measure_layers(*settings, place, scale, d, seed); });
    }
  }
  study.report = [settings](CsvRows const& rows) { return report(*settings, rows); };
  return study;
}

}  // namespace heed
