#include "experiments/study/samples.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/parallel.hpp"
#include "experiments/metric/probe/attention_maps.hpp"
#include "experiments/study/study.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/attention/steps.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace {

/// Of x, which is reordered.
std::vector<double> median_of(std::span<float> x) {
  auto const middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  if (x.size() % 2 == 1) return {*middle};
  return {(static_cast<double>(*middle) + *std::max_element(x.begin(), middle)) / 2};
}

/// The 1, 10, 90 and 99 % quantiles of x, which is reordered, and the share of Σ x² that its largest hundredth carries.
std::vector<double> spread_of(std::span<float> x) {
  std::vector<double> spread(5);
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

/// f of the values of the first `most` of `count` blocks; standard errors from f of the values of up to 32 groups of consecutive blocks. f
/// may reorder its values.
std::vector<Measured> by_block_groups(std::vector<float> const& values, std::size_t count, std::size_t most,
                                      std::vector<double> (*f)(std::span<float>)) {
  std::size_t const rows = values.size() / count, blocks = std::min(count, most), groups = std::min<std::size_t>(32, blocks);
  std::vector<float> copy(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(blocks * rows));
  std::vector<std::vector<double>> of_groups;
  for (std::size_t group = 0; group < groups; ++group) {
    std::size_t const first = blocks * group / groups * rows, last = blocks * (group + 1) / groups * rows;
    of_groups.push_back(f(std::span(copy).subspan(first, last - first)));
  }
  std::vector<Measured> measured;
  for (double const found : f(copy)) {
    auto const i = measured.size();
    measured.push_back({found, measured_mean(mapped(of_groups, [i](auto const& of_group) { return of_group[i]; })).standard_error, {}});
  }
  return measured;
}

/// The samples of one cell so far: a number per block for every quantity, and the norms of all rows.
class Samples {
 public:
  /// `gradients`: whether the block has gradients by queries and keys.
  void add(BlockMeans const& block, bool gradients) {
    for (std::size_t i = 0; i < quantities; ++i) {
      auto const q = static_cast<Quantity>(i);
      bool const of_rows = q == Quantity::frobenius_median || describes_spread(q) || q == Quantity::query_weights_gradient;
      if (!of_rows && (gradients || !is_gradient(q))) blocks_[i].push_back(block.means[i]);
    }
    frobenius_.insert(frobenius_.end(), block.frobenius.begin(), block.frobenius.end());
    query_gradient_.insert(query_gradient_.end(), block.query_gradient.begin(), block.query_gradient.end());
  }

  /// Sets all that a cell has of them: means, kurtosis, and the quantiles of the norms.
  void summarise(ScalingCell& cell) const {
    for (std::size_t q = 0; q < quantities; ++q)
      if (!blocks_[q].empty()) cell.values[q] = measured_mean(blocks_[q]);
    // E z⁴ / (E z²)², its error to first order
    auto const &second = of(Quantity::logit_variance), &fourth = of(Quantity::logit_kurtosis);
    double const m2 = measured_mean(second).mean, m4 = measured_mean(fourth).mean;
    std::vector<double> linear(second.size());
    for (std::size_t b = 0; b < second.size(); ++b) linear[b] = fourth[b] / (m2 * m2) - 2 * m4 * second[b] / (m2 * m2 * m2);
    heed::at(cell.values, Quantity::logit_kurtosis) = Measured{m4 / (m2 * m2), measured_mean(linear).standard_error, {}};
    add_norms(frobenius_, Quantity::trace, Quantity::frobenius_median, spread_of_jacobian, cell);
    add_norms(query_gradient_, Quantity::query_gradient_squared, Quantity::query_gradient_median, spread_of_query_gradient, cell);
  }

 private:
  std::vector<double> const& of(Quantity q) const { return heed::at(blocks_, q); }

  /// Median and spread of the norms of as many blocks as have a number for q. Far quantiles need no more than a million rows.
  void add_norms(std::vector<float> const& norms, Quantity q, Quantity median, std::array<Quantity, 5> const& spread,
                 ScalingCell& cell) const {
    if (norms.empty()) return;
    std::size_t const count = of(q).size(), most = std::max<std::size_t>(32, (1 << 20) / (norms.size() / count));
    heed::at(cell.values, median) = by_block_groups(norms, count, count, median_of).front();
    auto const found = by_block_groups(norms, count, most, spread_of);
    for (std::size_t i = 0; i < found.size(); ++i) heed::at(cell.values, spread[i]) = found[i];
  }

  std::array<std::vector<double>, quantities> blocks_;
  std::vector<float> frobenius_, query_gradient_;  ///< of all rows, block by block
};

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
        law_(law_of(distribution)),
        stream_(Stream(seed, "softmax_scaling")
                    .child(distribution)
                    .child(static_cast<std::uint64_t>(d_k))
                    .child(static_cast<std::uint64_t>(keys))),
        gradients_(law_ != Law::logits) {
    for (auto const& scale : settings.scales()) cells_.push_back({distribution, scale, d_k, keys});
    open_.resize(cells_.size());
    std::iota(open_.begin(), open_.end(), std::size_t{0});
  }

  std::vector<ScalingCell> run() {
    sample(64, stream_, too_many);
    sample(256, stream_.child("large"), std::numeric_limits<double>::infinity());
    for (ScalingCell& cell : cells_) {
      auto& median = heed::at(cell.values, Quantity::frobenius_median);
      if (law_ == Law::rademacher && heed::shortage(*median, settings_.precision) > 1) median.reset();
    }
    return std::move(cells_);
  }

 private:
  static constexpr Index pilot = 64, at_once = 64;
  static constexpr double too_many = 8;  ///< times as many small blocks as a pilot's: large ones take less time

  /// Draws blocks of up to so many queries for the open scales until they are precise, and fills in their cells. Those for which it would
  /// take more than `factor_limit` times as many stay open; what their cells hold so far stays where larger blocks do not replace it.
  void sample(Index queries, Stream const& stream, double factor_limit) {
    auto const shape = BlockShape::of(cells_.front().d_k, cells_.front().keys, queries);
    Index const most = std::max<Index>(pilot, static_cast<Index>(settings_.limit) / shape.logits());
    Index done = 0, wanted = pilot;
    std::vector<Samples> samples(cells_.size());
    while (!open_.empty()) {
      while (done < wanted) {
        Index const first = std::exchange(done, std::min(done + at_once, wanted));
        add_blocks(shape, stream, first, done, samples);
        stop_if_interrupted();
      }
      double factor = 0, gradient_factor = 0;
      for (auto const scale : std::exchange(open_, {})) {
        samples[scale].summarise(cells_[scale]);
        double const needed = shortage(cells_[scale], false), of_gradients = shortage(cells_[scale], true);
        if (std::max(needed, of_gradients) <= 1)
          samples[scale] = {};
        else
          open_.push_back(scale);
        factor = std::max({factor, needed, of_gradients});
        gradient_factor = std::max(gradient_factor, of_gradients);
      }
      gradients_ = gradient_factor > 1;
      if (done >= most || factor > factor_limit) break;
      wanted = std::min(most, static_cast<Index>(std::ceil(1.1 * factor * static_cast<double>(done))));
    }
  }

  /// Those from `first` to before `end`.
  void add_blocks(BlockShape const& shape, Stream const& stream, Index first, Index end, std::vector<Samples>& samples) {
    Wanted wanted{{}, gradients_, true};
    for (auto const scale : open_) wanted.scales.push_back(fixed_scale(cells_[scale].scale, static_cast<double>(shape.width)).value());
    std::vector<std::vector<BlockMeans>> blocks(static_cast<std::size_t>(end - first));
    parallel_for(end - first, 1e6, [&](Index from, Index to) {
      for (Index b = from; b < to; ++b)
        heed::at(blocks, b) = measure_block(draw_block(law_, shape, stream.child(static_cast<std::uint64_t>(first + b))), shape, wanted);
    });
    for (auto const& block : blocks)
      for (std::size_t i = 0; i < open_.size(); ++i) samples[open_[i]].add(block[i], gradients_);
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
  Law law_;
  Stream stream_;
  std::vector<ScalingCell> cells_;  ///< by scale
  std::vector<std::size_t> open_;
  bool gradients_;
};

/// Rows of head h of sequence b in x [B, T, H·d], as [T, d].
std::vector<float> head_of(Tensor const& x, Index b, Index h, Index width, Index first) {
  auto const rows = slice(slice(slice(x, 0, b, b + 1), 1, first, x.size(1)), 2, h * width, (h + 1) * width).to_vector();
  return {rows.begin(), rows.end()};
}

/// Queries of a sequence: the last ⌊n/16⌋·16.
Index queries_of(Index length) { return length / 16 * 16; }

/// The products of a head's block minus the mean over the visible keys: softmax is invariant to it, and variance and kurtosis are central.
ProductBlock centred_products(ProductBlock const& sequence, BlockShape const& shape) {
  ProductBlock block = sequence;
  multiply(block, shape);
  double total = 0, count = 0;
  for (Index j = 0; j < shape.keys; ++j) {
    for (Index i = shape.first_position ? std::max<Index>(0, j - *shape.first_position) : 0; i < shape.queries; ++i, ++count)
      total += static_cast<double>(heed::at(block.products, j * shape.queries + i));
  }
  auto const mean = static_cast<float>(total / count);
  for (float& z : block.products) z -= mean;
  return block;
}

}  // namespace

Batch random_batch(Stream const& stream, Index rows, Index context, Index vocabulary) {
  auto const tokens = [&](char const* name) {
    std::vector<Index> drawn(static_cast<std::size_t>(rows * context));
    for (std::size_t i = 0; i < drawn.size(); ++i)
      drawn[i] = static_cast<Index>(stream.child(name).below(i, static_cast<std::uint64_t>(vocabulary)));
    return Tensor::of(drawn, {rows, context});
  };
  return {{"inputs", tokens("inputs")}, {"targets", tokens("targets")}};
}

std::vector<ScalingCell> sample_cells(SoftmaxScalingSettings const& settings, std::string const& distribution, Index d_k, Index keys,
                                      std::uint64_t seed) {
  return Sampler(settings, distribution, d_k, keys, seed).run();
}

BlockShape TrainedHead::shape(Index n) const {
  BlockShape result{width, n, queries_of(length), length};
  if (causal) result.first_position = length - result.queries;
  return result;
}

std::vector<TrainedHead> trained_heads(std::string const& run, Index sequences, StudyContext const& context, ReadFiles& read) {
  auto const folder = find_run(run, context.folders);
  TrainedModel const trained = open_run(folder, "last");
  auto const weights = fs::is_directory(folder) ? folder / "checkpoint.safetensors" : folder;
  read["run"] = {weights.string(), sha256_of_file(weights)};
  auto const data = data_of(trained, context.folders, "validation", context.quiet);
  NoGrad const no_grad;
  std::vector<TrainedHead> heads;
  Index const rows = std::min<Index>(sequences, 16), length = trained.model->context();
  Index taken = 0;
  for (Index i = 0; i < data->validation_batches(rows, length) && taken < sequences; ++i) {
    Batch const batch = data->validation(i, rows, length);
    std::size_t next = 0, layer = 0;
    for (AttentionRecord const& record : recorded_attention(*trained.model, batch, {.inputs = true})) {
      Index const width = record.query.size(2) / record.heads, size = record.query.size(1);
      bool const self = size == record.key.size(1) && size >= 16;
      for (Index h = 0; h < record.heads && self; ++h, ++next) {
        if (next == heads.size()) heads.push_back({fmt::format("layer{}.head{}", layer, h), width, size, record.visibility.causal, {}});
        for (Index b = 0; b < record.query.size(0); ++b)
          heads[next].sequences.push_back(
              {head_of(record.query, b, h, width, size - queries_of(size)), head_of(record.key, b, h, width, 0), {}});
      }
      ++layer;
    }
    taken += batch.rows();
  }
  if (heads.empty()) throw FileError(fmt::format("{}: no self-attention over 16 tokens or more in its validation data", folder.string()));
  if (taken < 2) throw FileError(fmt::format("{}: its validation data are a single sequence", folder.string()));
  return heads;
}

std::vector<ScalingCell> measure_head(SoftmaxScalingSettings const& settings, TrainedHead const& head, Index keys) {
  BlockShape const shape = head.shape(keys);
  if (shape.keys < keys || shape.rows() == 0) return {};
  std::vector<ScalingCell> cells;
  Wanted wanted;
  for (auto const& scale : settings.scales()) {
    cells.push_back({head.name, scale, head.width, keys});
    wanted.scales.push_back(fixed_scale(scale, static_cast<double>(head.width)).value());
  }
  std::vector<std::vector<BlockMeans>> blocks(head.sequences.size());
  parallel_for(std::ssize(blocks), 1e6, [&](Index begin, Index end) {
    for (Index b = begin; b < end; ++b)
      heed::at(blocks, b) = measure_block(centred_products(heed::at(head.sequences, b), shape), shape, wanted);
  });
  for (std::size_t k = 0; k < cells.size(); ++k) {
    Samples samples;
    for (auto const& block : blocks) samples.add(block[k], true);
    samples.summarise(cells[k]);
  }
  return cells;
}

}  // namespace heed
