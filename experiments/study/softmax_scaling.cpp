// What softmax does to gradients as d_k grows: logits s q·k_j of one query and n keys, s = 1 (none), 1/√d_k (rsqrt) or 1/d_k (inverse).
//
// Queries and keys are drawn, multiplied and put through softmax in blocks: some queries meet some keys in groups of n, which is many rows
// for few random numbers. Rows of a block share queries or keys, so that a mean's standard error comes from the spread of the blocks'
// means, not of the rows; blocks are independent. Each row counts with its keys negated, too: all laws here are symmetric about 0. A cell
// of the grid draws blocks until every standard error is small enough. Nothing is drawn from conditional distributions: that given q the
// logits of Gaussian keys are N(0, |q|²) is theory, and stands on the other side.

#include "experiments/study/softmax_scaling.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "autograd/parallel.hpp"
#include "experiments/run/signals.hpp"
#include "experiments/study/layers.hpp"
#include "experiments/study/trained.hpp"
#include "experiments/text/progress.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

namespace {

// ---------------------------------------------------------------- sampling

/// The mean of n numbers with the standard error of independent ones.
Measured mean_of(std::vector<double> const& x) {
  auto const n = static_cast<double>(x.size());
  double const mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double squares = 0;
  for (double const value : x) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / (n - 1) / n), {}};
}

double median(std::span<float> x) {
  auto const middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  if (x.size() % 2 == 1) return *middle;
  return (static_cast<double>(*middle) + *std::max_element(x.begin(), middle)) / 2;
}

/// The 1, 10, 90 and 99 % quantiles of x, which is reordered, and the share of Σ x² that its largest hundredth carries.
std::array<double, 5> spread_of(std::span<float> x) {
  std::array<double, 5> spread{};
  auto const square = [](double sum, float value) { return sum + static_cast<double>(value) * static_cast<double>(value); };
  auto end = x.end();
  for (auto const& [i, level] : {std::pair<std::size_t, double>{3, 0.99}, {2, 0.9}, {1, 0.1}, {0, 0.01}}) {
    auto const at = x.begin() + static_cast<std::ptrdiff_t>(level * static_cast<double>(x.size()));
    std::nth_element(x.begin(), at, end);
    spread[i] = static_cast<double>(*at);
    if (i == 3) spread[4] = std::accumulate(at, end, 0.0, square);
    end = at;
  }
  double const all = std::accumulate(x.begin(), x.end(), 0.0, square);
  spread[4] = all > 0 ? spread[4] / all : 0;
  return spread;
}

/// What the blocks of one cell have given so far.
struct Samples {
  std::array<std::vector<double>, quantities> blocks;
  std::vector<float> frobenius, query_gradient;  ///< of all rows, block after block

  void add(BlockMeans const& block, bool gradients) {
    for (std::size_t i = 0; i < quantities; ++i) {
      auto const q = static_cast<Quantity>(i);
      bool const of_rows = q == Quantity::frobenius_median || describes_spread(q) || q == Quantity::query_weights_gradient;
      if (!of_rows && (gradients || !is_gradient(q))) blocks[i].push_back(block.means[i]);
    }
    frobenius.insert(frobenius.end(), block.frobenius.begin(), block.frobenius.end());
    query_gradient.insert(query_gradient.end(), block.query_gradient.begin(), block.query_gradient.end());
  }

  std::vector<double> const& of(Quantity q) const { return blocks[static_cast<std::size_t>(q)]; }

  /// E z⁴ / (E z²)², its error to first order.
  Measured kurtosis() const {
    auto const &second = of(Quantity::logit_variance), &fourth = of(Quantity::logit_kurtosis);
    double const m2 = mean_of(second).mean, m4 = mean_of(fourth).mean;
    std::vector<double> linear(second.size());
    for (std::size_t b = 0; b < second.size(); ++b) linear[b] = fourth[b] / (m2 * m2) - 2 * m4 * second[b] / (m2 * m2 * m2);
    return {m4 / (m2 * m2), mean_of(linear).standard_error, {}};
  }

  /// A copy of the values of the first so many blocks' rows in 32 lots of blocks, one after the other, for each of which `look` is called.
  template <class Look>
  static std::vector<float> in_lots(std::vector<float> const& values, std::size_t count, std::size_t rows, Look const& look) {
    std::size_t const lots = std::min<std::size_t>(32, count);
    std::vector<float> copy(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count * rows));
    for (std::size_t lot = 0; lot < lots; ++lot) {
      std::size_t const first = count * lot / lots * rows, last = count * (lot + 1) / lots * rows;
      look(std::span(copy).subspan(first, last - first));
    }
    return copy;
  }

  /// The median over all rows; its error from the lots' medians.
  static Measured median_of(std::vector<float> const& values, std::size_t count) {
    std::vector<double> medians;
    auto sorted = in_lots(values, count, values.size() / count, [&](std::span<float> lot) { medians.push_back(median(lot)); });
    return {median(sorted), mean_of(medians).standard_error, {}};
  }

  /// How the norms are spread, into a cell; errors likewise.
  void add_spread(Cell& cell) const {
    add_spread(frobenius, of(Quantity::trace).size(),
               {Quantity::frobenius_1, Quantity::frobenius_10, Quantity::frobenius_90, Quantity::frobenius_99, Quantity::frobenius_top},
               cell);
    if (query_gradient.empty()) return;
    auto const count = of(Quantity::query_gradient_squared).size();
    add_spread(query_gradient, count,
               {Quantity::query_gradient_1, Quantity::query_gradient_10, Quantity::query_gradient_90, Quantity::query_gradient_99,
                Quantity::query_gradient_top},
               cell);
    cell.values[static_cast<std::size_t>(Quantity::query_gradient_median)] = median_of(query_gradient, count);
  }

  /// Far quantiles need no more than a million rows.
  static void add_spread(std::vector<float> const& values, std::size_t count, std::array<Quantity, 5> const& names, Cell& cell) {
    constexpr std::size_t enough = 1 << 20;
    std::array<std::vector<double>, 5> of_lots;
    std::size_t const rows_of_block = values.size() / count, most = std::max<std::size_t>(32, enough / rows_of_block);
    auto rows = in_lots(values, std::min(count, most), rows_of_block, [&](std::span<float> lot) {
      auto const spread = spread_of(lot);
      for (std::size_t i = 0; i < spread.size(); ++i) of_lots[i].push_back(spread[i]);
    });
    auto const spread = spread_of(rows);
    for (std::size_t i = 0; i < spread.size(); ++i)
      cell.values[static_cast<std::size_t>(names[i])] = {spread[i], mean_of(of_lots[i]).standard_error, {}};
  }

  void summarise(Cell& cell) const {
    for (std::size_t q = 0; q < quantities; ++q) {
      if (!blocks[q].empty()) cell.values[q] = mean_of(blocks[q]);
    }
    cell.values[static_cast<std::size_t>(Quantity::logit_kurtosis)] = kurtosis();
    cell.values[static_cast<std::size_t>(Quantity::frobenius_median)] = median_of(frobenius, of(Quantity::trace).size());
  }
};

/// How many times as many blocks are needed for a relative standard error.
double shortage(Measured const& measured, double precision) {
  double const error = measured.standard_error / (precision * std::abs(measured.mean));
  return measured.standard_error > 0 ? error * error : 0;
}

/// All scales of one (distribution, d_k, keys).
class Sampler {
 public:
  Sampler(SoftmaxScalingSettings const& settings, std::string const& distribution, std::int64_t d_k, std::int64_t keys, std::uint64_t seed)
      : settings_(settings),
        scales_(settings.scales()),
        distribution_(distribution),
        law_(law_of(distribution)),
        stream_(Stream(seed, "softmax_scaling")
                    .child(distribution)
                    .child(static_cast<std::uint64_t>(d_k))
                    .child(static_cast<std::uint64_t>(keys))),
        small_(draws(BlockShape::of(d_k, keys, 64), stream_, false)),
        large_(draws(BlockShape::of(d_k, keys, 256), stream_.child("large"), true)) {}

  /// Nothing if it was interrupted.
  std::optional<std::vector<Cell>> run() {
    std::vector<Cell> cells(scales_.size());
    std::vector<std::size_t> open(scales_.size());
    std::iota(open.begin(), open.end(), std::size_t{0});
    bool gradients = law_ != Law::logits;
    for (Draws const& draws : {small_, large_}) {
      if (open.empty()) break;
      auto const left = sample(draws, std::move(open), gradients, cells);
      if (!left) return std::nullopt;
      open = *left;
    }
    for (std::size_t k = 0; k < cells.size(); ++k) {
      cells[k].distribution = distribution_;
      cells[k].scale = scales_[k];
      cells[k].d_k = small_.shape.width;
      cells[k].keys = small_.shape.n;
      auto& median = cells[k].values[static_cast<std::size_t>(Quantity::frobenius_median)];
      if (law_ == Law::rademacher && heed::shortage(*median, settings_.precision) > 1) median.reset();
    }
    return cells;
  }

 private:
  static constexpr std::int64_t pilot = 64, at_once = 64;
  static constexpr double too_many = 8;  ///< times as many small blocks as a pilot's: large ones take less time

  /// Blocks of one shape, and at most how many.
  struct Draws {
    BlockShape shape;
    Stream stream;
    std::int64_t most;
    bool last;
  };
  Draws draws(BlockShape const& shape, Stream const& stream, bool last) const {
    return {shape, stream, std::max<std::int64_t>(pilot, static_cast<std::int64_t>(settings_.limit) / shape.logits()), last};
  }

  /// Draws blocks for these scales until they are precise, and fills in their cells. Gives the scales for which it would take too many;
  /// what their cells hold so far stays where larger blocks do not replace it.
  std::optional<std::vector<std::size_t>> sample(Draws const& draws, std::vector<std::size_t> open, bool& gradients,
                                                 std::vector<Cell>& cells) {
    std::vector<Samples> samples(cells.size());
    auto const close = [&](std::size_t k) {
      samples[k].add_spread(cells[k]);
      samples[k] = {};
    };
    std::int64_t done = 0, wanted = std::min(pilot, draws.most);
    while (!open.empty()) {
      for (; done < wanted; done += std::min(at_once, wanted - done)) {
        if (interrupted()) return std::nullopt;
        add_blocks(draws, done, std::min(done + at_once, wanted), open, gradients, samples);
      }
      double factor = 0, gradient_factor = 0;
      std::vector<std::size_t> still_open;
      for (std::size_t const k : open) {
        samples[k].summarise(cells[k]);
        double const needed = shortage(cells[k], false), of_gradients = shortage(cells[k], true);
        if (std::max(needed, of_gradients) <= 1) {
          close(k);
          continue;
        }
        still_open.push_back(k);
        factor = std::max({factor, needed, of_gradients});
        gradient_factor = std::max(gradient_factor, of_gradients);
      }
      open = std::move(still_open);
      gradients = gradient_factor > 1;
      if (done >= draws.most || (!draws.last && factor > too_many)) break;
      wanted = std::min(draws.most, static_cast<std::int64_t>(std::ceil(1.1 * factor * static_cast<double>(done))));
    }
    for (std::size_t const k : open) close(k);
    return open;
  }

  void add_blocks(Draws const& draws, std::int64_t first, std::int64_t last, std::vector<std::size_t> const& open, bool gradients,
                  std::vector<Samples>& samples) {
    Wanted wanted{{}, gradients, true};
    for (std::size_t const k : open) wanted.scales.push_back(fixed_scale(scales_[k], static_cast<double>(draws.shape.width)).value());
    std::vector<std::vector<BlockMeans>> blocks(static_cast<std::size_t>(last - first));
    parallel_for(last - first, 1e6, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b)
        blocks[static_cast<std::size_t>(b)] =
            measure_block(draw_block(law_, draws.shape, draws.stream.child(static_cast<std::uint64_t>(first + b))), draws.shape, wanted);
    });
    for (auto const& block : blocks) {
      for (std::size_t i = 0; i < open.size(); ++i) samples[open[i]].add(block[i], gradients);
    }
  }

  /// The largest of a cell's shortages, of the gradients or of everything else. The median of a lattice is a point of it, or between two:
  /// more rows would not help.
  double shortage(Cell const& cell, bool gradients) const {
    double most = 0;
    for (std::size_t i = 0; i < quantities; ++i) {
      auto const q = static_cast<Quantity>(i);
      if (describes_spread(q) || is_gradient(q) != gradients || (q == Quantity::frobenius_median && law_ == Law::rademacher)) continue;
      if (auto const* const value = cell.get(q)) most = std::max(most, heed::shortage(*value, settings_.precision));
    }
    return most;
  }

  SoftmaxScalingSettings const& settings_;
  std::vector<std::string> scales_;
  std::string distribution_;
  Law law_;
  Stream stream_;
  Draws small_, large_;
};

/// One head of a trained model: all its sequences, nothing more to draw.
std::vector<Cell> measure_head(TrainedHead const& head, std::int64_t n, SoftmaxScalingSettings const& settings) {
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
  std::vector<Cell> cells;
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

/// Layers of Transformers that are not trained, at every second d_k; fewer draws for a quick look. Nothing if it was interrupted.
std::optional<std::vector<Cell>> measure_layers(SoftmaxScalingSettings const& settings, std::uint64_t seed) {
  LayerDraws const draws{settings.layers, settings.quick ? 4 : 16};
  auto const widths = integers(settings.d_k);
  std::vector<Cell> cells;
  for (std::size_t i = 0; i < widths.size() && settings.layers > 0; i += widths.size() > 6 ? 2 : 1) {
    for (auto const& scale : settings.scales()) {
      if (scale != "none" && scale != "rsqrt") continue;
      for (std::string const place : {"pre", "post"}) {
        auto const found = gradients_of_layers(draws, place, scale, widths[i], seed);
        if (!found) return std::nullopt;
        for (std::size_t layer = 0; layer < found->norms.size(); ++layer) {
          Cell& cell = cells.emplace_back(Cell{fmt::format("{}-norm layer{}", place, layer), scale, widths[i], LayerDraws::context});
          cell.values[static_cast<std::size_t>(Quantity::query_weights_gradient)] = mean_of(found->norms[layer]);
        }
      }
    }
  }
  return cells;
}

std::optional<StudyResult> study_softmax_scaling(SoftmaxScalingSettings const& settings, StudyContext const& context) {
  auto const looked_at = settings.looked_at();
  auto const cells = measure_grid(looked_at, context);
  return cells ? std::optional(report(looked_at, *cells)) : std::nullopt;
}

bool const registered = register_study("softmax_scaling", "how softmax saturates as d_k grows, with and without a scale, beside the theory",
                                       study_softmax_scaling, softmax_scaling_page);

}  // namespace

std::optional<std::vector<Cell>> measure_grid(SoftmaxScalingSettings const& settings, StudyContext const& context) {
  auto const heads = settings.run ? trained_heads(*settings.run, settings.sequences, context) : std::vector<TrainedHead>();
  auto const total = static_cast<std::int64_t>(settings.distribution.size() * settings.d_k.size() * settings.keys.size());
  Progress progress(context.name, total, 0, context.quiet, "cells");
  progress.update(0, "quadrature");
  GridTheory const theory(settings);
  std::vector<Cell> const kept = cells_of(context.kept, "results.csv");
  std::vector<Cell> cells;
  std::int64_t done = 0;
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds between(5);
  auto next = Clock::now() + between;
  auto const keep = [&] {
    if (!context.keep || done == 0) return;
    auto result = report(settings, cells);
    result.sentences.insert(result.sentences.begin(),
                            fmt::format("Measured so far: {} of {} cells of the grid; the same command goes on.", done, total));
    context.keep(result);
    next = Clock::now() + between;
  };
  for (auto const& distribution : settings.distribution) {
    for (auto const d : integers(settings.d_k)) {
      for (auto const keys : integers(settings.keys)) {
        std::vector<Cell> measured;
        std::ranges::copy_if(kept, std::back_inserter(measured),
                             [&](Cell const& c) { return c.distribution == distribution && c.d_k == d && c.keys == keys; });
        if (measured.empty()) {
          auto found = Sampler(settings, distribution, d, keys, context.seed).run();
          if (!found) {
            keep();
            return std::nullopt;
          }
          measured = std::move(*found);
        }
        theory.add_to(measured);
        cells.insert(cells.end(), measured.begin(), measured.end());
        progress.update(++done, fmt::format("{}, d_k {}, {} keys", distribution, d, keys));
        if (Clock::now() >= next) keep();
      }
    }
  }
  for (auto const& head : heads) {
    for (auto const keys : integers(settings.keys)) {
      if (interrupted()) return std::nullopt;
      auto const measured = measure_head(head, keys, settings);
      cells.insert(cells.end(), measured.begin(), measured.end());
    }
  }
  progress.update(done, "layers");
  auto const layers = measure_layers(settings, context.seed);
  if (!layers) return std::nullopt;
  cells.insert(cells.end(), layers->begin(), layers->end());
  progress.finish();
  return cells;
}

}  // namespace heed
