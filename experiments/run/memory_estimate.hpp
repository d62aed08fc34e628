#pragma once

#include <cstdint>

#include "experiments/data/dataset.hpp"
#include "experiments/run/experiment.hpp"
#include "nn/model.hpp"

namespace heed {

/// A run's approximate peak memory, in bytes.
struct MemoryEstimate {
  double weights;  ///< with the optimizer's moments, an average if kept, and gradients if accumulated over micro-batches
  double pass;     ///< forward and backward pass of a step with its gradients, or more if probes and evaluation need more
  double tokens;   ///< inputs, targets and pictures of all micro-batches of a step
  std::int64_t context;
  double total() const { return weights + pass + tokens; }
};
/// Measures the peaks of passes over fewer sequences of the longest length and extrapolates linearly, in less time than a training step.
/// Uses no random stream of training; leaves no gradients.
MemoryEstimate memory_estimate(Experiment const& settings, Dataset const& data, Model const& model, Parameters const& parameters);

/// Throws ConfigError with the required and available memory if the run cannot fit: check_parameters for parameters, gradients and
/// optimizer, before they are allocated; the other for everything, with one pass over one sequence, and more passes only if the result is
/// close.
void check_parameters(LoadedExperiment const& experiment, Dataset const& data);
void check_memory(LoadedExperiment const& experiment, Dataset const& data, Model const& model, Parameters const& parameters);

}  // namespace heed
