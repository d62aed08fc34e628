#pragma once

#include <string>
#include <vector>

#include "experiments/study/saturation.hpp"
#include "experiments/study/study.hpp"

namespace heed {

/// Queries and keys of one head of a trained model, rotated by position if the model does so: a block per sequence.
struct TrainedHead {
  std::string name;  ///< "layer0.head1"
  Index width = 0, length = 0;
  bool causal = false;
  std::vector<ProductBlock> sequences;  ///< without products

  BlockShape shape(Index n) const;
};

/// All heads of the run's model on its first validation sequences; adds its weights to the files `read`. Throws ConfigError if there is no
/// such run, FileError if it has no self-attention or fewer than two sequences.
std::vector<TrainedHead> trained_heads(std::string const& run, Index sequences, StudyContext const& context, ReadFiles& read);

/// The products of a head's block minus the mean over the visible keys: softmax is invariant to it, and variance and kurtosis are central.
ProductBlock centred_products(ProductBlock const& sequence, BlockShape const& shape);

}  // namespace heed
