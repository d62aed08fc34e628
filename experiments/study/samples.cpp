#include "experiments/study/samples.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "autograd/parallel.hpp"
#include "experiments/study/study.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

namespace {

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

/// Copies the values of the first `count` blocks, each of `rows` values, divides the blocks into up to 32 groups of consecutive ones, and
/// calls f on the values of each group, which f may reorder. Returns the copy.
template <class F>
std::vector<float> by_block_groups(std::vector<float> const& values, std::size_t count, std::size_t rows, F const& f) {
  std::size_t const groups = std::min<std::size_t>(32, count);
  std::vector<float> copy(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count * rows));
  for (std::size_t group = 0; group < groups; ++group) {
    std::size_t const first = count * group / groups * rows, last = count * (group + 1) / groups * rows;
    f(std::span(copy).subspan(first, last - first));
  }
  return copy;
}

/// The median over all rows; its standard error from the medians of groups of blocks.
Measured median_of(std::vector<float> const& values, std::size_t count) {
  std::vector<double> medians;
  auto sorted = by_block_groups(values, count, values.size() / count, [&](std::span<float> group) { medians.push_back(median(group)); });
  return {median(sorted), measured_mean(medians).standard_error, {}};
}

/// Far quantiles need no more than a million rows.
void add_spread_of(std::vector<float> const& values, std::size_t count, std::array<Quantity, 5> const& names, ScalingCell& cell) {
  constexpr std::size_t enough = 1 << 20;
  std::array<std::vector<double>, 5> of_groups;
  std::size_t const rows_of_block = values.size() / count, most = std::max<std::size_t>(32, enough / rows_of_block);
  auto rows = by_block_groups(values, std::min(count, most), rows_of_block, [&](std::span<float> group) {
    auto const spread = spread_of(group);
    for (std::size_t i = 0; i < spread.size(); ++i) of_groups[i].push_back(spread[i]);
  });
  auto const spread = spread_of(rows);
  for (std::size_t i = 0; i < spread.size(); ++i)
    heed::at(cell.values, names[i]) = {spread[i], measured_mean(of_groups[i]).standard_error, {}};
}

/// How many times as many blocks are needed for a relative standard error.
double shortage(Measured const& measured, double precision) {
  double const error = measured.standard_error / (precision * std::abs(measured.mean));
  return measured.standard_error > 0 ? error * error : 0;
}

/// All scales of one (distribution, d_k, keys).
class Sampler {
 public:
  Sampler(SoftmaxScalingSettings const& settings, std::string const& distribution, Index d_k, Index keys, std::uint64_t seed)
      : settings_(settings),
        scales_(settings.scales()),
        law_(law_of(distribution)),
        stream_(Stream(seed, "softmax_scaling")
                    .child(distribution)
                    .child(static_cast<std::uint64_t>(d_k))
                    .child(static_cast<std::uint64_t>(keys))),
        draws_{draws(BlockShape::of(d_k, keys, 64), stream_), draws(BlockShape::of(d_k, keys, 256), stream_.child("large"))},
        cells_(scales_.size()),
        samples_(scales_.size()),
        open_(scales_.size()),
        gradients_(law_ != Law::logits) {
    std::iota(open_.begin(), open_.end(), Index{0});
    for (std::size_t k = 0; k < scales_.size(); ++k) cells_[k] = {distribution, scales_[k], d_k, keys};
  }

  std::vector<ScalingCell> run() {
    for (auto const& draws : draws_) sample(draws);
    for (ScalingCell& cell : cells_) {
      auto& median = heed::at(cell.values, Quantity::frobenius_median);
      if (law_ == Law::rademacher && heed::shortage(*median, settings_.precision) > 1) median.reset();
    }
    return std::move(cells_);
  }

 private:
  static constexpr Index pilot = 64, at_once = 64;
  static constexpr double too_many = 8;  ///< times as many small blocks as a pilot's: large ones take less time

  /// Blocks of one shape, and at most how many.
  struct BlockDraws {
    BlockShape shape;
    Stream stream;
    Index most;
  };
  BlockDraws draws(BlockShape const& shape, Stream const& stream) const {
    return {shape, stream, std::max<Index>(pilot, static_cast<Index>(settings_.limit) / shape.logits())};
  }

  void close(Index scale) {
    auto const k = static_cast<std::size_t>(scale);
    samples_[k].add_spread(cells_[k]);
    samples_[k] = {};
  }

  /// BlockDraws blocks for the open scales until they are precise, and fills in their cells. Those for which it would take too many stay
  /// open; what their cells hold so far stays where larger blocks do not replace it.
  void sample(BlockDraws const& draws) {
    bool const last = &draws == &draws_.back();
    Index done = 0, wanted = std::min(pilot, draws.most);
    while (!open_.empty()) {
      while (done < wanted) {
        Index const first = std::exchange(done, std::min(done + at_once, wanted));
        add_blocks(draws, first, done);
        stop_if_interrupted();
      }
      double factor = 0, gradient_factor = 0;
      std::vector<Index> still_open;
      for (auto const scale : open_) {
        auto const k = static_cast<std::size_t>(scale);
        samples_[k].summarise(cells_[k]);
        double const needed = shortage(cells_[k], false), of_gradients = shortage(cells_[k], true);
        if (std::max(needed, of_gradients) <= 1) {
          close(scale);
          continue;
        }
        still_open.push_back(scale);
        factor = std::max({factor, needed, of_gradients});
        gradient_factor = std::max(gradient_factor, of_gradients);
      }
      open_ = std::move(still_open);
      gradients_ = gradient_factor > 1;
      if (done >= draws.most || (!last && factor > too_many)) break;
      wanted = std::min(draws.most, static_cast<Index>(std::ceil(1.1 * factor * static_cast<double>(done))));
    }
    for (auto const scale : open_) close(scale);
  }

  /// Those from `first` to before `end`.
  void add_blocks(BlockDraws const& draws, Index first, Index end) {
    Wanted wanted{{}, gradients_, true};
    for (auto const k : open_) wanted.scales.push_back(fixed_scale(heed::at(scales_, k), static_cast<double>(draws.shape.width)).value());
    std::vector<std::vector<BlockMeans>> blocks(static_cast<std::size_t>(end - first));
    parallel_for(end - first, 1e6, [&](Index from, Index to) {
      for (Index b = from; b < to; ++b)
        heed::at(blocks, b) =
            measure_block(draw_block(law_, draws.shape, draws.stream.child(static_cast<std::uint64_t>(first + b))), draws.shape, wanted);
    });
    for (auto const& block : blocks) {
      for (std::size_t i = 0; i < open_.size(); ++i) heed::at(samples_, open_[i]).add(block[i], gradients_);
    }
  }

  /// The largest shortage among a cell's quantities, those of gradients or all others. The median of rademacher logits is left out: it is
  /// one of few possible values, or halfway between two, and more rows would not make it more precise.
  double shortage(ScalingCell const& cell, bool gradients) const {
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
  Law law_;
  Stream stream_;
  std::array<BlockDraws, 2> draws_;
  std::vector<ScalingCell> cells_;  ///< by scale, as are samples
  std::vector<Samples> samples_;    ///< of the stage: small blocks, then large ones
  std::vector<Index> open_;
  bool gradients_;
};

}  // namespace

Measured measured_mean(std::vector<double> const& x) {
  auto const n = static_cast<double>(x.size());
  double const mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double squares = 0;
  for (double const value : x) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / (n - 1) / n), {}};
}

void Samples::add(BlockMeans const& block, bool gradients) {
  for (std::size_t i = 0; i < quantities; ++i) {
    auto const q = static_cast<Quantity>(i);
    bool const of_rows = q == Quantity::frobenius_median || describes_spread(q) || q == Quantity::query_weights_gradient;
    if (!of_rows && (gradients || !is_gradient(q))) blocks_[i].push_back(block.means[i]);
  }
  frobenius_.insert(frobenius_.end(), block.frobenius.begin(), block.frobenius.end());
  query_gradient_.insert(query_gradient_.end(), block.query_gradient.begin(), block.query_gradient.end());
}

/// E z⁴ / (E z²)², its error to first order.
Measured Samples::kurtosis() const {
  auto const &second = of(Quantity::logit_variance), &fourth = of(Quantity::logit_kurtosis);
  double const m2 = measured_mean(second).mean, m4 = measured_mean(fourth).mean;
  std::vector<double> linear(second.size());
  for (std::size_t b = 0; b < second.size(); ++b) linear[b] = fourth[b] / (m2 * m2) - 2 * m4 * second[b] / (m2 * m2 * m2);
  return {m4 / (m2 * m2), measured_mean(linear).standard_error, {}};
}

void Samples::add_spread(ScalingCell& cell) const {
  add_spread_of(frobenius_, of(Quantity::trace).size(), spread_of_jacobian, cell);
  if (query_gradient_.empty()) return;
  auto const count = of(Quantity::query_gradient_squared).size();
  add_spread_of(query_gradient_, count, spread_of_query_gradient, cell);
  heed::at(cell.values, Quantity::query_gradient_median) = median_of(query_gradient_, count);
}

void Samples::summarise(ScalingCell& cell) const {
  for (std::size_t q = 0; q < quantities; ++q) {
    if (!blocks_[q].empty()) cell.values[q] = measured_mean(blocks_[q]);
  }
  heed::at(cell.values, Quantity::logit_kurtosis) = kurtosis();
  heed::at(cell.values, Quantity::frobenius_median) = median_of(frobenius_, of(Quantity::trace).size());
}

std::vector<ScalingCell> sample_cells(SoftmaxScalingSettings const& settings, std::string const& distribution, Index d_k, Index keys,
                                      std::uint64_t seed) {
  return Sampler(settings, distribution, d_k, keys, seed).run();
}

}  // namespace heed
