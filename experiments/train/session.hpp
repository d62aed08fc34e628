#pragma once

#include <filesystem>

#include "experiments/folder/folder.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/train/experiment.hpp"

namespace heed {

/// The folder of a run's results.
std::filesystem::path folder_of(LoadedExperiment const& experiment);

/// Trains the experiment in its folder, or resumes it there. `fresh`: moves an older folder aside first. Throws FileError, FolderError,
/// TrainingError. Returns done or interrupted.
Exit train(LoadedExperiment& experiment, bool quiet, bool fresh);
/// The same in a folder that this process has already locked.
Exit train(LoadedExperiment& experiment, bool quiet, FolderLock const& lock);

/// Whether a run is finished: it has its summary, and has made as many steps as `settings` ask for, or has stopped early before.
bool is_finished(std::filesystem::path const& folder, Experiment const& settings);

}  // namespace heed
