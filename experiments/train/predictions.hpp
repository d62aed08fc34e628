#pragma once

#include <filesystem>

#include "experiments/data/dataset.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/model.hpp"

namespace heed {

/// Writes `predictions.jsonl` into a run's folder: for every held-out example its location in its file, texts, label, prediction and
/// probability; for the most confident errors also the attention of the last layer's summary token ([CLS], [extract]), mean over heads:
/// "looked": [["film", 0.31], …]. Returns the file's name; "" for data without labelled examples. Throws Error if it cannot be written.
std::string write_predictions(std::filesystem::path const& folder, Experiment const& settings, Dataset const& data, Model const& model);

}  // namespace heed
