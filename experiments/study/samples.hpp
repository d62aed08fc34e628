#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/study/saturation.hpp"
#include "experiments/study/softmax_scaling.hpp"
#include "experiments/study/study.hpp"

namespace heed {

/// Inputs and targets [rows, context] of random tokens.
Batch random_batch(Stream const& stream, Index rows, Index context, Index vocabulary);

/// Draws blocks of one (distribution, d_k, keys) until every standard error is small enough: a cell for each scale, without theory. Throws
/// as stop_if_interrupted(), after so many blocks.
std::vector<ScalingCell> sample_cells(SoftmaxScalingSettings const& settings, std::string const& distribution, Index d_k, Index keys,
                                      std::uint64_t seed);

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

/// Cells of a trained model's head by scale, from all its sequences; none if no query sees so many keys.
std::vector<ScalingCell> measure_head(SoftmaxScalingSettings const& settings, TrainedHead const& head, Index keys);

}  // namespace heed
