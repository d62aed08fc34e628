#pragma once

#include "experiments/config/config.hpp"
#include "experiments/program/run_options.hpp"

namespace heed {

/// Completes `model` by that of the weights in `init.from`: keys that the document leaves out get the weights' values, those that it gives
/// keep its own. A section of another kind, or of another variant of linear attention, is the document's alone. Does nothing, and
/// returns false, without `init.from`, for weights that are not there (training refuses them) and for a file of weights without a
/// configuration. Throws FileError for a file that is none, ConfigError for a configuration that cannot be read, and if
/// weights are missing that would give the model.
bool inherit_model(Document& document, Folders const& folders);

}  // namespace heed
