#pragma once

#include "experiments/ablation/plan.hpp"
#include "experiments/run/session.hpp"

namespace heed {

/// Checks that every arm can be trained here, then trains every arm with every seed, several at a time, goes on where an earlier call was
/// cut off, and leaves tables, statistics and a report in the ablation's folder. Any number of processes that run the same file share its
/// trials: each claims what is free, and waits for the others' at the end of a stage. A failed trial, of tuning too, is said at once and
/// does not stop the others; the next call that comes when no other is at work tries it
/// again, unless its numbers were not finite: the same program would come to the same ones. Of an arm that cannot be trained, its exit
/// code, and nothing is trained. Throws ConfigError, FolderError, FileError. Returns done, failed if a trial failed, or interrupted.
Exit run_ablation(RunOptions const& options);

/// Writes the tables of an ablation's folder again from what its trials have left so far, where the last ones lack a trial or there are
/// none yet. Does nothing for a folder of something else. Throws ConfigError if there are none and ablation.yaml cannot be read any more
/// (its base is gone), and as write_results() does.
void renew_results(std::filesystem::path const& folder, Places const& places);

/// Validates the file and all its arms, their data and memory included, and prints the ablation and its base as resolved.
Exit check_ablation(RunOptions const& options);

/// `heed plan`: prints the arms, the number of runs, the time that they will take (from a few steps of each arm, measured here) and what
/// the seeds can show. Writes nothing. Returns done; of an arm that cannot be trained, its exit code, and then no arm makes a step.
Exit plan_ablation(RunOptions const& options);

}  // namespace heed
