#pragma once

#include <cstdint>
#include <filesystem>

#include <nlohmann/json_fwd.hpp>

#include "experiments/run/signals.hpp"

namespace heed {

/// How often a run was stopped by a batch system before it had finished; counted apart, as only who runs out of time needs more of it.
struct Interruptions {
  std::int64_t preempted = 0, timed_out = 0;
  bool any() const { return preempted + timed_out > 0; }
};

/// What interruptions.json in the run's folder says, or summary.json of a finished one; zeros without either, or for one that cannot be
/// read.
Interruptions interruptions_of(std::filesystem::path const& folder);
/// Counts one more there; what a person asked for is not counted. That it cannot be written is no reason to fail.
void record_interruption(std::filesystem::path const& folder, StopReason reason);
/// As summary.json of a finished run has them, in whose folder the file is not needed any more.
nlohmann::ordered_json as_json(Interruptions const& counts);
void forget_interruptions(std::filesystem::path const& folder);

}  // namespace heed
