#pragma once

#include <memory>

#include "experiments/train/experiment.hpp"
#include "nn/optimizer.hpp"
#include "nn/parameters.hpp"

namespace heed {

/// The optimizer of `train.optimizer` for a model's parameters, with its groups. Throws ConfigError at the location of a group that does
/// not fit the model, with the nearest names if it matches none.
std::unique_ptr<Optimizer> optimizer_for(LoadedExperiment const& experiment, Parameters const& parameters);

}  // namespace heed
