#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/study/saturation.hpp"
#include "experiments/study/softmax_scaling.hpp"

namespace heed {

/// The mean of n numbers with the standard error for independent ones.
Measured measured_mean(std::vector<double> const& x);

/// The samples of one cell so far: a number per block for every quantity, and the norms of all rows.
class Samples {
 public:
  /// `gradients`: whether the block has gradients by queries and keys.
  void add(BlockMeans const& block, bool gradients);
  /// Sets the means, kurtosis and the median of ‖J‖_F in a cell.
  void summarise(ScalingCell& cell) const;
  /// Sets the quantiles of the norms in a cell; errors from their spread over groups of blocks.
  void add_spread(ScalingCell& cell) const;

 private:
  std::vector<double> const& of(Quantity q) const { return at(blocks_, q); }
  Measured kurtosis() const;

  std::array<std::vector<double>, quantities> blocks_;
  std::vector<float> frobenius_, query_gradient_;  ///< of all rows, block by block
};

/// Draws blocks of one (distribution, d_k, keys) until every standard error is small enough: a cell for each scale, without theory. Throws
/// as stop_if_interrupted(), after so many blocks.
std::vector<ScalingCell> sample_cells(SoftmaxScalingSettings const& settings, std::string const& distribution, Index d_k, Index keys,
                                      std::uint64_t seed);

}  // namespace heed
