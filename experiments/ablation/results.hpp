#pragma once

#include <string>
#include <vector>

#include "experiments/ablation/tuning.hpp"
#include "experiments/report/ablation_result.hpp"

namespace heed {

/// Writes results.csv, summary.json, summary.md and, where there were probes, probes.npz into the ablation's folder, from what its trials
/// left on disk (experiments/README.md). Returns the page for the terminal. Throws FileError for a damaged trial, Error if the disk is
/// full.
std::string write_results(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned);

/// What the trials say that are done or have failed. Throws FileError for a damaged trial.
AblationResult summarise(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned);

/// As summary.md.
std::string summary_markdown(AblationResult const& result);
/// For the terminal; begins with `folder`.
std::string summary_page(std::string const& folder, AblationResult const& result);

}  // namespace heed
