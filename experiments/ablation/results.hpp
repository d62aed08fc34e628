#pragma once

#include <string>
#include <vector>

#include "experiments/ablation/tuning.hpp"

namespace heed {

/// Writes results.csv, summary.json, summary.md and, where there were probes, probes.npz into the ablation's folder, from what its trials
/// left on disk: see design.md, section 5. Returns the page for the terminal. Throws FileError for a damaged trial, Error if the disk is
/// full.
std::string write_results(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned);

}  // namespace heed
