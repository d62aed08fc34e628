#pragma once

#include <filesystem>
#include <optional>

#include "experiments/run/experiment.hpp"

namespace heed {

/// A model from another program's folder as if a run had left it (read_gpt2), without data. Its numbers have the type of the file's, or
/// this one. Throws what read_gpt2() throws.
TrainedModel open_foreign_model(std::filesystem::path const& folder, std::optional<DType> dtype);

}  // namespace heed
