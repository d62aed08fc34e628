#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "autograd/memory.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/estimator.hpp"
#include "nn/model.hpp"
#include "nn/optimizer.hpp"

/// Checks before the first step, and before any arm of an ablation is trained: throw ConfigError at the location of the key, FileError for
/// data.
namespace heed {

class Trainer;

/// A limit of the memory that this machine has available now.
MemoryLimit within_available_memory();
/// Calls f and converts its Errors to ConfigErrors at the location of the key that the message begins with, else of `section`; OutOfMemory
/// to one at the location of the batch's size, unless the system refused the memory.
void judging(Document const& document, std::string const& section, std::function<void()> const& f);

/// Checks that the data provide what training will ask for.
void check_data(LoadedExperiment const& experiment, Dataset const& data, Model const& model);
/// Throws Error if the parameters alone need more memory than is available, before they are allocated.
void check_parameters(Experiment const& settings, Signature const& data);
/// Refuses probes that do not apply to the model.
void check_probes(LoadedExperiment const& experiment, Model const& model);
/// Refuses an estimator that does not support the model's random choices.
void check_estimator(LoadedExperiment const& experiment, Estimator const& estimator, Dataset const& data, Model const& model);
/// Refuses a number of processes by which train.accumulate cannot be divided.
void check_ranks(LoadedExperiment const& experiment, Index size);
/// The optimizer of `train.optimizer` for a model's parameters, with its groups. Throws ConfigError at the location of a group that does
/// not fit the model, with the nearest names if it matches none.
std::unique_ptr<Optimizer> optimizer_for(LoadedExperiment const& experiment, Parameters const& parameters);
/// Compares, over all ranks, everything on which a run depends: the program and the kernels that it uses on this processor, the settings by
/// key, the content of every file that was read, the initial weights, the run's folder, and its checkpoint, unless the run begins anew
/// (`fresh`). All ranks call it, before anything is written. Throws ConfigError, in all of them, naming what differs and each rank's value.
void check_same_run(Trainer const& trainer, Experiment& settings, std::filesystem::path const& folder, bool fresh);

}  // namespace heed
