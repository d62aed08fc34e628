#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "autograd/memory.hpp"
#include "experiments/train/experiment.hpp"

/// Checks before the first step, and before any arm of an ablation is trained: throw ConfigError at the location of the key, FileError for
/// data.
namespace heed {

class Trainer;

/// A limit of the memory that this machine has available now.
MemoryLimit within_available_memory();
/// Calls f and converts its Errors to ConfigErrors at the location of the key that the message begins with, else of `section`; OutOfMemory
/// to one at the location of the batch's size, unless the system refused the memory.
void judging(Document const& document, std::string const& section, std::function<void()> const& f);

/// Compares, over all ranks, everything on which a run depends: the program and the kernels that it uses on this processor, the settings by
/// key, the content of every file that was read, the initial weights, the run's folder, and its checkpoint, unless the run begins anew
/// (`fresh`). All ranks call it, before anything is written. Throws ConfigError, in all of them, naming what differs and each rank's value;
/// also if train.accumulate cannot be divided by their number.
void check_same_run(Trainer const& trainer, LoadedExperiment& experiment, std::filesystem::path const& folder, bool fresh);

}  // namespace heed
