#pragma once

#include <filesystem>

#include <nlohmann/json_fwd.hpp>

#include "experiments/train/experiment.hpp"

namespace heed {

/// What a run goes on from (`train.continue`): another run's weights, optimizer, data position and random state.
struct ContinuedRun {
  std::filesystem::path folder;
  HashedFile file;  ///< its checkpoint
  Checkpoint checkpoint;
  double rate;  ///< learning rate of its last update
};

/// The last checkpoint of the run in a folder. Throws ConfigError for settings that must be that run's (seed, dtype, data, model, init,
/// batch, accumulate, kind of optimizer, ema, adapters) and are not, and unless train.steps exceeds its updates; FileError for a folder
/// without a checkpoint, or with a damaged one.
ContinuedRun continued_run(LoadedExperiment const& experiment, std::filesystem::path const& folder);

/// Lays the rows and the best weights of that run into the new one's folder, so that curves join and the best evaluation stays known.
/// Throws FileError if they are damaged, Error if they cannot be written.
void take_rows(ContinuedRun const& from, std::filesystem::path const& folder, bool with_best);

/// For summary.json: the run, its step and checkpoint, and what it was itself continued from ("continued").
nlohmann::ordered_json lineage_of(ContinuedRun const& from);
/// "continued from runs/a at step 100, which was continued from runs/b at step 50", from a summary's lineage.
std::string lineage_in_words(nlohmann::ordered_json const& lineage);

}  // namespace heed
