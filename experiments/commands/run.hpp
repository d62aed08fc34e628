#pragma once

#include "experiments/run/session.hpp"

namespace heed {

/// Trains what the file describes, or all trials of the ablation that it describes, or makes the study, or goes on where an earlier call
/// was cut off, and leaves a finished folder with its report. Throws ConfigError, FileError, FolderError, TrainingError. Returns done or
/// interrupted.
Exit run(RunOptions const& options);

/// Validates the file, data and memory included, and prints the resolved configuration.
Exit check(RunOptions const& options);

}  // namespace heed
