#pragma once

#include <memory>

#include "experiments/run/experiment.hpp"
#include "nn/optimizer.hpp"
#include "nn/parameters.hpp"

namespace heed {

/// The optimizer of `train.optimizer` for the parameters of a model, with its groups. Throws ConfigError at the place of the group that
/// does not go with the model, with the nearest names where it matches none.
std::unique_ptr<Optimizer> optimizer_for(LoadedExperiment const& experiment, Parameters const& parameters);

}  // namespace heed
