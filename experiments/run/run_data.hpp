#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "experiments/data/dataset.hpp"
#include "experiments/run/experiment.hpp"
#include "experiments/run/session.hpp"

namespace heed {

/// The data that a run was trained on, read again, with `split` held out. `path`: the run's folder or its checkpoint. Throws ConfigError
/// for data without that part, FileError if they are not there, or are others than those of the training.
std::unique_ptr<Dataset> data_of(TrainedModel const& run, std::filesystem::path const& path, Places const& places,
                                 std::string const& split = "validation", bool quiet = true);

}  // namespace heed
