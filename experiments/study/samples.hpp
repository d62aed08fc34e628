#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/study/saturation.hpp"
#include "experiments/study/softmax_scaling.hpp"
#include "experiments/study/unfinished.hpp"

namespace heed {

/// The mean of n numbers with the standard error of independent ones.
Measured measured_mean(std::vector<double> const& x);

/// What the blocks of one cell have given so far: a number of each block for every quantity, and the norms of all rows.
class Samples {
 public:
  /// `gradients`: whether the block has those by queries and keys.
  void add(BlockMeans const& block, bool gradients);
  /// Means, kurtosis and the median of ‖J‖_F, into a cell.
  void summarise(ScalingCell& cell) const;
  /// How the norms are spread, into a cell; errors from the spread of lots of blocks.
  void add_spread(ScalingCell& cell) const;
  /// All of it as tensors whose names begin so; they are read where they lie: these samples must outlive them, unchanged.
  void put_into(PartOfCell& part, std::string const& prefix);
  /// What put_into() has put.
  static Samples from(PartOfCell const& part, std::string const& prefix);

 private:
  std::vector<double> const& of(Quantity q) const { return blocks_[static_cast<std::size_t>(q)]; }
  Measured kurtosis() const;

  std::array<std::vector<double>, quantities> blocks_;
  std::vector<float> frobenius_, query_gradient_;  ///< of all rows, block after block
};

/// Draws blocks of one (distribution, d_k, keys) until every standard error is small enough: a cell for each scale, without theory. Where
/// `part` is the file that an earlier call has left it goes on with that, and comes to the bits of one that was not interrupted. An
/// interruption is looked for after so many blocks have been measured: then nothing, and what was measured is in the file (an empty path:
/// nowhere). Throws Error if it cannot be.
std::optional<std::vector<ScalingCell>> sample_cells(SoftmaxScalingSettings const& settings, std::string const& distribution,
                                                     std::int64_t d_k, std::int64_t keys, std::uint64_t seed,
                                                     std::filesystem::path const& part);

}  // namespace heed
