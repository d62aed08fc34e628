#pragma once

#include <cstdint>

#include "experiments/run/experiment.hpp"

namespace heed {

/// What a run holds at its peak, in bytes, about.
struct MemoryEstimate {
  double weights;  ///< with the optimizer's moments and perhaps an average; with gradients, if those of an earlier micro-batch are there
  double pass;     ///< a step's forward and backward pass, or the gradients that it leaves, or what probes look at, whichever is most
  double tokens;   ///< inputs, targets and pictures of all micro-batches of a step
  std::int64_t context;
  double total() const { return weights + pass + tokens; }
};
MemoryEstimate memory_estimate(Experiment const& settings, Signature const& data);

/// Refuses what cannot fit into memory before anything is made: throws ConfigError with what is needed and what there is.
void check_memory(LoadedExperiment const& experiment, Signature const& data);

}  // namespace heed
