#pragma once

#include <filesystem>

#include "experiments/train/experiment.hpp"
#include "experiments/train/train.hpp"

namespace heed {

/// Compares, over all ranks, everything on which a run depends: the program and the kernels that it uses on this processor, the settings by
/// key, the content of every file that was read, the initial weights, the run's folder, and its checkpoint, unless the run begins anew
/// (`fresh`). All ranks call it, before anything is written. Throws ConfigError, in all of them, naming what differs and each rank's value.
void check_same_run(Trainer const& trainer, Experiment& settings, std::filesystem::path const& folder, bool fresh);

}  // namespace heed
