#pragma once

#include <filesystem>

#include "experiments/data/dataset.hpp"
#include "experiments/run/experiment.hpp"
#include "nn/model.hpp"

namespace heed {

/// Leaves `predictions.jsonl` in a run's folder: of every held-out example a line with its place in its file, its texts, its label, what
/// the model says instead and with what probability; of those that it gets wrong with the most confidence also where the last layer's
/// summary token ([CLS], [extract]) has looked, the mean of its heads: "looked": [["film", 0.31], …]. Nothing for data that are no labelled
/// examples. The file's name; "" if there is none. Throws Error where it cannot be written.
std::string write_predictions(std::filesystem::path const& folder, Experiment const& settings, Dataset const& data, Model const& model);

}  // namespace heed
