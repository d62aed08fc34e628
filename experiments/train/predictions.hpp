#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/train/experiment.hpp"

namespace heed {

/// What a model answers to one held-out example.
struct ExamplePrediction {
  nlohmann::ordered_json line;  ///< of predictions.jsonl
  bool right = false;
  double confidence = 0;  ///< the answer's probability; of a span the score above that of no answer
  Index row = 0;          ///< its number in the held-out data
};

/// The answers to labelled examples: place, texts, label, prediction and the classes' (options') probabilities. Examples that are not
/// labelled have no label.
std::vector<ExamplePrediction> predictions_for(Dataset const& data, Model const& model, HeldOut const& rows, bool labelled = true);

/// Writes `predictions.jsonl` into a run's folder: for every held-out example its location in its file, texts, label, prediction and
/// probability; for the most confident errors also the attention of the last layer's summary token ([CLS], [extract]), mean over heads:
/// "looked": [["film", 0.31], …]. Does nothing for data without labelled examples. Throws Error if it cannot be written.
void write_predictions(std::filesystem::path const& folder, Experiment const& settings, Dataset const& data, Model const& model);

}  // namespace heed
