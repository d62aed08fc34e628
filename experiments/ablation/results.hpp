#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/ablation/jobs.hpp"

namespace heed {

/// What came of `tune:`; empty without it.
struct TuningResult {
  std::vector<std::string> names;  ///< of an arm at a point of the grid: the jobs' `arm`
  std::vector<Job> jobs;
  std::vector<std::optional<std::vector<Assignment>>> chosen{};  ///< for each arm; nothing if no point trained it to its end
};

/// Writes results.csv, summary.json, summary.md and, where there were probes, probes.npz into the ablation's folder, from what its trials
/// left on disk: see design.md, section 5. Returns the page for the terminal. Throws FileError for a damaged trial, Error if the disk is
/// full.
std::string write_results(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned);

}  // namespace heed
