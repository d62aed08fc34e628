#pragma once

#include <cstdint>

#include "experiments/data/dataset.hpp"
#include "experiments/run/experiment.hpp"
#include "nn/model.hpp"

namespace heed {

/// What a run holds at its peak, in bytes, about.
struct MemoryEstimate {
  double weights;  ///< with the optimizer's moments and perhaps an average; with gradients, if those of an earlier micro-batch are there
  double pass;     ///< a step's forward and backward pass with the gradients that it leaves, or what probes and evaluation add to these
  double tokens;   ///< inputs, targets and pictures of all micro-batches of a step
  std::int64_t context;
  double total() const { return weights + pass + tokens; }
};
/// Passes over fewer sequences of the longest length are made, their peaks are measured and continued in a line, in less time than a
/// training step takes. Draws from no stream that training draws from; leaves no gradient in the parameters.
MemoryEstimate memory_estimate(Experiment const& settings, Dataset const& data, Model const& model, Parameters const& parameters);

/// Refuses what cannot fit into memory: throws ConfigError with what is needed and what there is. Of the parameters, their gradients and
/// the optimizer, before they are made; and of all. The second makes one pass over one sequence, and more only where that leaves a doubt.
void check_parameters(LoadedExperiment const& experiment, Dataset const& data);
void check_memory(LoadedExperiment const& experiment, Dataset const& data, Model const& model, Parameters const& parameters);

}  // namespace heed
