#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/study/saturation.hpp"
#include "experiments/study/study.hpp"

namespace heed {

/// Queries and keys of one head of a trained model, turned by their positions if the model does that: a block for each sequence.
struct TrainedHead {
  std::string name;  ///< "layer0.head1"
  std::int64_t width = 0, length = 0;
  bool causal = false;
  std::vector<ProductBlock> sequences;  ///< without products

  BlockShape shape(std::int64_t n) const;
};

/// All heads of the run's model in its first so many validation sequences. Throws ConfigError if there is no such run, FileError if it
/// holds no self-attention or fewer than two sequences.
std::vector<TrainedHead> trained_heads(std::string const& run, std::int64_t sequences, StudyContext const& context);

/// The products of a head's block, less the mean of those that are seen: softmax does not know of it, variance and kurtosis are about it.
ProductBlock centred_products(ProductBlock const& sequence, BlockShape const& shape);

}  // namespace heed
