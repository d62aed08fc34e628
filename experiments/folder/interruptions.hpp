#pragma once

#include <filesystem>

#include <nlohmann/json_fwd.hpp>

#include "autograd/index.hpp"
#include "experiments/program/signals.hpp"

namespace heed {

/// How often a batch system stopped a run before it had finished. Timeouts are counted separately, because only they call for a longer time
/// limit.
struct Interruptions {
  Index preempted = 0, timed_out = 0;
  bool any() const { return preempted + timed_out > 0; }
};

/// The counts in interruptions.json of the run's folder, or in summary.json of a finished run; zeros if neither can be read.
Interruptions interruptions_of(std::filesystem::path const& folder);
/// Adds one to the counts in the run's folder; a stop that a person asked for is not counted. Failure to write is ignored.
void record_interruption(std::filesystem::path const& folder, StopReason reason);
/// The counts for summary.json of a finished run, which replaces interruptions.json.
nlohmann::ordered_json as_json(Interruptions const& counts);
/// Removes interruptions.json.
void forget_interruptions(std::filesystem::path const& folder);

}  // namespace heed
