#pragma once

#include <cstddef>
#include <vector>

#include "experiments/ablation/jobs.hpp"

namespace heed {

/// Writes results.csv, summary.json, summary.md and, where there were probes, probes.npz into the ablation's folder, from what its trials
/// left on disk: see design.md, section 5. `tuned`: for each arm the point of the grid that it took; empty if nothing was tuned. Returns
/// the page for the terminal. Throws FileError for a damaged trial, Error if the disk is full.
std::string write_results(Ablation const& ablation, std::vector<Job> const& jobs, std::vector<std::vector<Assignment>> const& tuned);

}  // namespace heed
