#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "experiments/train/experiment.hpp"
#include "experiments/train/selection.hpp"
#include "experiments/train/train.hpp"

namespace heed {

/// A run at its last step.
struct FinishedRun {
  Trainer const& trainer;
  Experiment& settings;
  Selection const& selection;
  Row last;                 ///< the last evaluation
  Index steps_here = 0;     ///< made by this call
  double seconds = 0;       ///< of training, over all calls
  double seconds_here = 0;  ///< of this call
  double memory_peak = 0;   ///< of tensors in a training step, in bytes

  /// The evaluation whose weights are kept instead of the last; null: none.
  Selection::Best const* kept() const;
  /// The last evaluation's values; those of validation are the kept weights'.
  Row values() const;
};

/// A metric of a row; NaN: it has none of this name.
double value_or_nan(Row const& row, std::string const& name);

/// Tokens per second; 0 where no time has passed.
double tokens_per_second(Index tokens, double seconds);

/// What summary.json says (experiments/README.md), without its files' hashes: values, reference losses, baselines, what was read, the
/// environment and the configuration.
nlohmann::ordered_json summary_of(FinishedRun const& run, std::filesystem::path const& folder);

/// A few lines on standard output: time, memory, the kept evaluation, and the values beside what they are held against.
void print_result(FinishedRun const& run, std::filesystem::path const& folder);

}  // namespace heed
