// What softmax does to gradients as d_k grows: logits s q·k_j of one query and n keys, s = 1 (none), 1/√d_k (rsqrt) or 1/d_k (inverse).
//
// Queries and keys are drawn, multiplied and put through softmax in blocks: some queries meet some keys in groups of n, which is many rows
// for few random numbers. Rows of a block share queries or keys, so that a mean's standard error comes from the spread of the blocks'
// means, not of the rows; blocks are independent. A cell of the grid draws blocks until every standard error is small enough. Nothing is
// drawn from conditional distributions: that given q the logits of Gaussian keys are N(0, |q|²) is theory, and stands on the other side.

#include "experiments/study/softmax_scaling.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "autograd/parallel.hpp"
#include "experiments/run/signals.hpp"
#include "experiments/study/quadrature.hpp"
#include "experiments/study/trained.hpp"
#include "experiments/text/progress.hpp"

namespace heed {

namespace {

constexpr std::array laws{std::pair{"logits", Law::logits}, std::pair{"gaussian", Law::gaussian}, std::pair{"uniform", Law::uniform},
                          std::pair{"rademacher", Law::rademacher}};

Law law_of(std::string const& name) {
  return std::ranges::find(laws, name, [](auto const& law) { return std::string(law.first); })->second;
}

double scale_of(std::string const& name, std::int64_t d_k) {
  auto const d = static_cast<double>(d_k);
  if (name.starts_with(power_prefix)) return std::pow(d, -std::stod(name.substr(power_prefix.size())));
  return name == "none" ? 1 : name == "rsqrt" ? 1 / std::sqrt(d) : 1 / d;
}

std::vector<std::int64_t> integers(std::vector<double> const& values) { return {values.begin(), values.end()}; }

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
  std::vector<float> frobenius;  ///< of all rows, block after block

  void add(BlockMeans const& block, bool gradients) {
    for (std::size_t q = 0; q < quantities; ++q) {
      bool const gradient =
          q == static_cast<std::size_t>(Quantity::query_gradient_squared) || q == static_cast<std::size_t>(Quantity::key_gradient_squared);
      bool const spread = q == static_cast<std::size_t>(Quantity::frobenius_median) || describes_spread(static_cast<Quantity>(q));
      if (!spread && (gradients || !gradient)) blocks[q].push_back(block.means[q]);
    }
    frobenius.insert(frobenius.end(), block.frobenius.begin(), block.frobenius.end());
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

  /// A copy of the rows in 32 lots of blocks, one after the other, for each of which `look` is called.
  template <class Look>
  std::vector<float> in_lots(Look const& look) const {
    std::size_t const count = of(Quantity::trace).size(), rows = frobenius.size() / count, lots = std::min<std::size_t>(32, count);
    std::vector<float> copy = frobenius;
    for (std::size_t lot = 0; lot < lots; ++lot) {
      std::size_t const first = count * lot / lots * rows, last = count * (lot + 1) / lots * rows;
      look(std::span(copy).subspan(first, last - first));
    }
    return copy;
  }

  /// The median over all rows; its error from the lots' medians.
  Measured frobenius_median() const {
    std::vector<double> medians;
    auto sorted = in_lots([&](std::span<float> lot) { medians.push_back(median(lot)); });
    return {median(sorted), mean_of(medians).standard_error, {}};
  }

  /// How ‖J‖_F is spread, into a cell; errors likewise.
  void add_spread(Cell& cell) const {
    std::array<std::vector<double>, 5> of_lots;
    auto rows = in_lots([&](std::span<float> lot) {
      auto const spread = spread_of(lot);
      for (std::size_t i = 0; i < spread.size(); ++i) of_lots[i].push_back(spread[i]);
    });
    auto const spread = spread_of(rows);
    for (std::size_t i = 0; i < spread.size(); ++i)
      cell.values[static_cast<std::size_t>(Quantity::frobenius_1) + i] = {spread[i], mean_of(of_lots[i]).standard_error, {}};
  }

  Cell summarise() const {
    Cell cell;
    for (std::size_t q = 0; q < quantities; ++q) {
      if (!blocks[q].empty()) cell.values[q] = mean_of(blocks[q]);
    }
    cell.values[static_cast<std::size_t>(Quantity::logit_kurtosis)] = kurtosis();
    cell.values[static_cast<std::size_t>(Quantity::frobenius_median)] = frobenius_median();
    return cell;
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
        shape_(BlockShape::of(d_k, keys)),
        stream_(Stream(seed, "softmax_scaling")
                    .child(distribution)
                    .child(static_cast<std::uint64_t>(d_k))
                    .child(static_cast<std::uint64_t>(keys))),
        most_(std::max<std::int64_t>(pilot, static_cast<std::int64_t>(settings.limit) / shape_.logits())) {}

  /// Nothing if it was interrupted.
  std::optional<std::vector<Cell>> run() {
    std::size_t const count = scales_.size();
    std::vector<Samples> samples(count);
    std::vector<Cell> cells(count);
    std::vector<std::size_t> open(count);
    std::iota(open.begin(), open.end(), std::size_t{0});
    bool gradients = law_ != Law::logits;
    std::int64_t done = 0, wanted = std::min(pilot, most_);
    while (!open.empty()) {
      for (; done < wanted; done += std::min(at_once, wanted - done)) {
        if (interrupted()) return std::nullopt;
        add_blocks(done, std::min(done + at_once, wanted), open, gradients, samples);
      }
      double factor = 0, gradient_factor = 0;
      std::vector<std::size_t> still_open;
      for (std::size_t const k : open) {
        cells[k] = samples[k].summarise();
        double const needed = shortage(cells[k], false), of_gradients = shortage(cells[k], true);
        if (std::max(needed, of_gradients) <= 1) {
          samples[k].add_spread(cells[k]);
          samples[k] = {};
          continue;
        }
        still_open.push_back(k);
        factor = std::max({factor, needed, of_gradients});
        gradient_factor = std::max(gradient_factor, of_gradients);
      }
      open = std::move(still_open);
      gradients = gradient_factor > 1;
      if (done >= most_) break;
      wanted = std::min(most_, static_cast<std::int64_t>(std::ceil(1.1 * factor * static_cast<double>(done))));
    }
    for (std::size_t const k : open) samples[k].add_spread(cells[k]);
    for (std::size_t k = 0; k < count; ++k) {
      cells[k].distribution = distribution_;
      cells[k].scale = scales_[k];
      cells[k].d_k = shape_.width;
      cells[k].keys = shape_.n;
      auto& median = cells[k].values[static_cast<std::size_t>(Quantity::frobenius_median)];
      if (law_ == Law::rademacher && heed::shortage(*median, settings_.precision) > 1) median.reset();
    }
    return cells;
  }

 private:
  static constexpr std::int64_t pilot = 64, at_once = 64;

  void add_blocks(std::int64_t first, std::int64_t last, std::vector<std::size_t> const& open, bool gradients,
                  std::vector<Samples>& samples) {
    Wanted wanted{{}, gradients};
    for (std::size_t const k : open) wanted.scales.push_back(scale_of(scales_[k], shape_.width));
    std::vector<std::vector<BlockMeans>> blocks(static_cast<std::size_t>(last - first));
    parallel_for(last - first, 1e6, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b)
        blocks[static_cast<std::size_t>(b)] =
            measure_block(draw_block(law_, shape_, stream_.child(static_cast<std::uint64_t>(first + b))), shape_, wanted);
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
      bool const gradient = q == Quantity::query_gradient_squared || q == Quantity::key_gradient_squared;
      if (describes_spread(q) || gradient != gradients || (q == Quantity::frobenius_median && law_ == Law::rademacher)) continue;
      if (auto const* const value = cell.get(q)) most = std::max(most, heed::shortage(*value, settings_.precision));
    }
    return most;
  }

  SoftmaxScalingSettings const& settings_;
  std::vector<std::string> scales_;
  std::string distribution_;
  Law law_;
  BlockShape shape_;
  Stream stream_;
  std::int64_t most_;  ///< blocks
};

/// One head of a trained model: all its sequences, nothing more to draw.
std::vector<Cell> measure_head(TrainedHead const& head, std::int64_t n, SoftmaxScalingSettings const& settings) {
  BlockShape const shape = head.shape(n);
  if (shape.keys < n || shape.rows() == 0) return {};
  Wanted wanted;
  auto const scales = settings.scales();
  for (auto const& scale : scales) wanted.scales.push_back(scale_of(scale, head.width));
  std::vector<std::vector<BlockMeans>> blocks(head.sequences.size());
  parallel_for(static_cast<std::int64_t>(blocks.size()), 1e6, [&](std::int64_t begin, std::int64_t end) {
    for (auto b = static_cast<std::size_t>(begin); b < static_cast<std::size_t>(end); ++b)
      blocks[b] = measure_block(centred_products(head.sequences[b], shape), shape, wanted);
  });
  std::vector<Cell> cells;
  for (std::size_t k = 0; k < scales.size(); ++k) {
    Samples samples;
    for (auto const& block : blocks) samples.add(block[k], true);
    cells.push_back(samples.summarise());
    samples.add_spread(cells.back());
    cells.back().distribution = head.name;
    cells.back().scale = scales[k];
    cells.back().d_k = head.width;
    cells.back().keys = n;
  }
  return cells;
}

// ---------------------------------------------------------------- theory

/// What theory says of the cells with one distribution, scale and d_k, by number of keys.
std::vector<std::array<std::optional<double>, quantities>> theory_of(std::string const& distribution, double scale, std::int64_t d_k,
                                                                     std::vector<std::int64_t> const& keys) {
  auto const d = static_cast<double>(d_k);
  std::vector<std::array<std::optional<double>, quantities>> result(keys.size());
  auto const set = [&](std::size_t i, Quantity q, double value) { result[i][static_cast<std::size_t>(q)] = value; };
  auto const set_softmax = [&](std::size_t i, SoftmaxExpectations const& e) {
    set(i, Quantity::trace, e.trace);
    set(i, Quantity::frobenius_squared, e.frobenius_squared);
    set(i, Quantity::entropy, e.entropy);
    set(i, Quantity::max_weight, e.max_weight);
  };
  // E z⁴/(E z²)² = 3 + (κ² − 3)/d for components of kurtosis κ
  Law const law = law_of(distribution);
  double const component = law == Law::gaussian ? 3 : law == Law::uniform ? 1.8 : 1;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    set(i, Quantity::logit_variance, scale * scale * d);
    set(i, Quantity::logit_kurtosis, law == Law::logits ? 3 : 3 + (component * component - 3) / d);
  }
  if (law == Law::logits) {
    auto const expected = softmax_of_normal_logits(scale * scale * d, keys);
    for (std::size_t i = 0; i < keys.size(); ++i) set_softmax(i, expected[i]);
  }
  if (law == Law::gaussian) {
    auto const expected = softmax_of_gaussian_products(d_k, scale, keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      set_softmax(i, expected[i].softmax);
      set(i, Quantity::query_gradient_squared, expected[i].query_gradient_squared);
      set(i, Quantity::key_gradient_squared, expected[i].key_gradient_squared);
    }
  }
  return result;
}

void add_theory(SoftmaxScalingSettings const& settings, std::vector<Cell>& cells) {
  struct Task {
    std::string distribution, scale;
    std::int64_t d_k;
  };
  auto const keys = integers(settings.keys);
  std::vector<Task> tasks;
  for (auto const d : integers(settings.d_k)) {  // neighbours cost alike: both threads get their share
    for (auto const& distribution : settings.distribution) {
      for (auto const& scale : settings.scales()) tasks.push_back({distribution, scale, d});
    }
  }
  std::vector<std::vector<std::array<std::optional<double>, quantities>>> theories(tasks.size());
  auto const count = static_cast<std::int64_t>(tasks.size());
  int const stripes = threads();
  parallel_for(stripes, 1e9, [&](std::int64_t begin, std::int64_t end) {
    for (auto stripe = begin; stripe < end; ++stripe) {
      for (auto t = stripe; t < count; t += stripes) {
        auto const& [distribution, scale, d] = tasks[static_cast<std::size_t>(t)];
        theories[static_cast<std::size_t>(t)] = theory_of(distribution, scale_of(scale, d), d, keys);
      }
    }
  });
  for (auto& cell : cells) {
    auto const task = std::ranges::find_if(
        tasks, [&](Task const& t) { return t.distribution == cell.distribution && t.scale == cell.scale && t.d_k == cell.d_k; });
    auto const& theory = theories[static_cast<std::size_t>(task - tasks.begin())]
                                 [static_cast<std::size_t>(std::ranges::find(keys, cell.keys) - keys.begin())];
    for (std::size_t q = 0; q < quantities; ++q) {
      if (cell.values[q]) cell.values[q]->theory = theory[q];
    }
  }
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
  std::vector<Cell> cells;
  std::int64_t done = 0;
  for (auto const& distribution : settings.distribution) {
    for (auto const d : integers(settings.d_k)) {
      for (auto const keys : integers(settings.keys)) {
        auto const measured = Sampler(settings, distribution, d, keys, context.seed).run();
        if (!measured) return std::nullopt;
        cells.insert(cells.end(), measured->begin(), measured->end());
        progress.update(++done, fmt::format("{}, d_k {}, {} keys", distribution, d, keys));
      }
    }
  }
  progress.update(done, "quadrature");
  add_theory(settings, cells);
  for (auto const& head : heads) {
    for (auto const keys : integers(settings.keys)) {
      if (interrupted()) return std::nullopt;
      auto const measured = measure_head(head, keys, settings);
      cells.insert(cells.end(), measured.begin(), measured.end());
    }
  }
  progress.finish();
  return cells;
}

}  // namespace heed
