// What softmax does to gradients as d_k grows: logits s q·k_j of one query and n keys, s = 1 (none), 1/√d_k (rsqrt) or 1/d_k (inverse).
//
// Queries and keys are drawn, multiplied and put through softmax in blocks: some queries meet some keys in groups of n, which gives many
// rows from few random numbers. Rows of a block share queries or keys, so that a mean's standard error is estimated from the block means;
// blocks are independent. Each row also counts with its keys negated, since all laws here are symmetric about 0. A cell of the grid draws
// blocks until every standard error is small enough. Conditional distributions are not used for sampling: that the logits of Gaussian keys
// given q are N(0, |q|²) belongs to the theory that is tested.

#include "experiments/study/softmax_scaling.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

#include <fmt/format.h>

#include "autograd/parallel.hpp"
#include "experiments/run/folder.hpp"
#include "experiments/run/progress.hpp"
#include "experiments/run/signals.hpp"
#include "experiments/study/layers.hpp"
#include "experiments/study/samples.hpp"
#include "experiments/study/trained.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

namespace {

/// One head of a trained model: all its sequences, nothing more to draw.
std::vector<ScalingCell> measure_head(TrainedHead const& head, std::int64_t n, SoftmaxScalingSettings const& settings) {
  BlockShape const shape = head.shape(n);
  if (shape.keys < n || shape.rows() == 0) return {};
  Wanted wanted;
  auto const scales = settings.scales();
  for (auto const& scale : scales) wanted.scales.push_back(fixed_scale(scale, static_cast<double>(head.width)).value());
  std::vector<std::vector<BlockMeans>> blocks(head.sequences.size());
  parallel_for(static_cast<std::int64_t>(blocks.size()), 1e6, [&](std::int64_t begin, std::int64_t end) {
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

/// The way through all cells: those that were kept are taken, the others measured, and what is there is kept now and then.
class GridWalk {
 public:
  GridWalk(SoftmaxScalingSettings const& settings, StudyContext const& context)
      : settings_(settings),
        context_(context),
        heads_(settings.run ? trained_heads(*settings.run, settings.sequences, context) : std::vector<TrainedHead>()),
        theory_(settings),
        kept_(cells_of(context.kept, "results.csv")),
        total_(static_cast<std::int64_t>(settings.distribution.size() * settings.d_k.size() * settings.keys.size())),
        progress_(context.name, total_, 0, context.quiet, "cells") {}

  /// Nothing if it was interrupted. Then what was done is kept, be it a part of a cell: an interruption is looked for after something has
  /// been measured, so that any number of them, as soon as they like, come to the end.
  std::optional<std::vector<ScalingCell>> run() {
    for (auto const& distribution : settings_.distribution)
      for (auto const d : integers(settings_.d_k))
        for (auto const keys : integers(settings_.keys))
          if (!measure_law(distribution, d, keys)) return stopped();
    if (!measure_heads()) return stopped();
    progress_.update(done_, "layers");
    if (!measure_layers()) return stopped();
    progress_.finish();
    return std::move(cells_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Takes what was kept of the cells that are so; false if there are none.
  template <class Is>
  bool take(Is const& is) {
    auto const before = cells_.size();
    std::ranges::copy_if(kept_, std::back_inserter(cells_), is);
    return cells_.size() > before;
  }

  /// The file for a part of a cell; empty if none is kept.
  std::filesystem::path part_of(std::string const& cell) const {
    return context_.unfinished.empty() ? "" : context_.unfinished / (file_label(cell) + ".safetensors");
  }

  /// Cells are whole now; the part of them goes when they are kept. True if there is time for more.
  bool add(std::vector<ScalingCell> const& measured, std::filesystem::path part = {}) {
    cells_.insert(cells_.end(), measured.begin(), measured.end());
    if (!part.empty()) whole_.push_back(std::move(part));
    if (Clock::now() >= due_) keep();
    return !interrupted();
  }

  bool measure_law(std::string const& distribution, std::int64_t d, std::int64_t keys) {
    auto const is = [&](ScalingCell const& c) { return c.distribution == distribution && c.d_k == d && c.keys == keys; };
    bool more = true;
    if (!take(is)) {
      auto const part = part_of(fmt::format("{} {} {}", distribution, d, keys));
      auto measured = sample_cells(settings_, distribution, d, keys, context_.seed, part);
      if (!measured) return false;
      theory_.add_to(*measured);
      more = add(*measured, part);
    }
    progress_.update(++done_, fmt::format("{}, d_k {}, {} keys", distribution, d, keys));
    return more;
  }

  bool measure_heads() {
    for (auto const& head : heads_) {
      for (auto const keys : integers(settings_.keys)) {
        if (take([&](ScalingCell const& c) { return c.distribution == head.name && c.d_k == head.width && c.keys == keys; })) continue;
        if (!add(measure_head(head, keys, settings_))) return false;
      }
    }
    return true;
  }

  /// Layers of Transformers that are not trained, at every second d_k; fewer draws for a quick look.
  bool measure_layers() {
    auto const widths = integers(settings_.d_k);
    for (std::size_t i = 0; i < widths.size() && settings_.layers > 0; i += widths.size() > 6 ? 2 : 1) {
      for (auto const& scale : settings_.scales()) {
        if (scale != "none" && scale != "rsqrt") continue;
        for (std::string const place : {"pre", "post"})
          if (!measure_layers_of(place, scale, widths[i])) return false;
      }
    }
    return true;
  }

  bool measure_layers_of(std::string const& place, std::string const& scale, std::int64_t d) {
    auto const prefix = place + "-norm layer";
    if (take([&](ScalingCell const& c) { return c.distribution.starts_with(prefix) && c.scale == scale && c.d_k == d; })) return true;
    auto const part = part_of(fmt::format("{}s {} {}", prefix, scale, d));
    auto const found = gradients_of_layers({settings_.layers, settings_.quick ? 4 : 16}, place, scale, d, context_.seed, part);
    if (!found) return false;
    std::vector<ScalingCell> measured;
    for (std::size_t layer = 0; layer < found->norms.size(); ++layer) {
      ScalingCell& cell = measured.emplace_back(ScalingCell{fmt::format("{}{}", prefix, layer), scale, d, LayerDraws::context});
      cell.values[static_cast<std::size_t>(Quantity::query_weights_gradient)] = measured_mean(found->norms[layer]);
    }
    return add(measured, part);
  }

  void keep() {
    due_ = Clock::now() + between;
    if (!context_.keep || cells_.empty()) return;
    auto result = report(settings_, cells_);
    result.sentences.insert(result.sentences.begin(),
                            fmt::format("Measured so far: {} of {} cells of the grid; the same command goes on.", done_, total_));
    context_.keep(result);
    std::error_code ignored;
    for (auto const& part : whole_) std::filesystem::remove(part, ignored);
    whole_.clear();
  }

  std::optional<std::vector<ScalingCell>> stopped() {
    keep();
    return std::nullopt;
  }

  static constexpr std::chrono::seconds between{5};

  SoftmaxScalingSettings const& settings_;
  StudyContext const& context_;
  std::vector<TrainedHead> heads_;  ///< first: a missing run is reported before anything is measured
  GridTheory theory_;
  std::vector<ScalingCell> kept_, cells_;
  std::vector<std::filesystem::path> whole_;  ///< files of parts whose cells are whole, and not kept yet
  std::int64_t done_ = 0, total_;             ///< cells of laws, with all scales
  Progress progress_;
  Clock::time_point due_ = Clock::now() + between;
};

std::optional<StudyResult> study_softmax_scaling(SoftmaxScalingSettings const& settings, StudyContext const& context) {
  auto const looked_at = settings.looked_at();
  auto const cells = GridWalk(looked_at, context).run();
  return cells ? std::optional(report(looked_at, *cells)) : std::nullopt;
}

Declared<StudyKind> const softmax_scaling_study{
    study_kind("softmax_scaling", "saturation of softmax as d_k grows, with and without a scale, compared with theory",
               study_softmax_scaling, softmax_scaling_page)};

}  // namespace

std::optional<std::vector<ScalingCell>> measure_grid(SoftmaxScalingSettings const& settings, StudyContext const& context) {
  return GridWalk(settings, context).run();
}

}  // namespace heed
