#pragma once

#include <cstdint>
#include <string>

#include "experiments/data/dataset.hpp"
#include "experiments/run/experiment.hpp"
#include "nn/estimator.hpp"
#include "nn/model.hpp"

/// What is better told before the first step than at it, or when an ablation's arms before have been trained: ConfigError at the place of
/// the key, FileError for data.
namespace heed {

/// Calls f. What it holds against the settings is told with the place of the key that the message begins with, else of `section`.
template <class F>
auto judging(Document const& document, std::string const& section, F f) {
  try {
    return f();
  } catch (ConfigError const&) {
    throw;
  } catch (FileError const&) {
    throw;
  } catch (Error const& error) {
    std::string const message = error.what();
    std::string const key = message.substr(0, message.find(": "));
    throw ConfigError(place_of(document, document.root.find(key) != nullptr ? key : section), message);
  }
}

/// What the data lack is better told now than at the step that asks for it.
void check_data(LoadedExperiment const& experiment, Dataset const& data, Model const& model);
/// A pass over one row: what the engine refuses is better told now than at the first step, or when the arms before have been trained.
void try_pass(LoadedExperiment const& experiment, Dataset const& data, Model const& model);
/// Refuses probes that say nothing of the model.
void check_probes(LoadedExperiment const& experiment, Model const& model);
/// Refuses an estimator that cannot estimate the gradients of a model that chooses at random.
void check_estimator(LoadedExperiment const& experiment, Estimator const& estimator, Dataset const& data, Model const& model);
/// Refuses a number of processes by which train.accumulate cannot be divided.
void check_ranks(LoadedExperiment const& experiment, std::int64_t size);

}  // namespace heed
