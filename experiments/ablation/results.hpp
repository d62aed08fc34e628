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

/// Cells that the tables of an ablation have in common. The interval of a mean: "[1.965, 2.018]", "none: infinite", or "" if few values
/// have none.
std::string interval_cell(NumberFormat const& format, Estimate const& estimate);
/// Seeds with a value, of `asked`: "6", "4/6", "6 (3 diverged)".
std::string seeds_cell(ArmResult const& arm, std::size_t asked);
/// "validation.loss (last, lower is better), mean and 95 % interval over 6 seeds", the metric as `metric` has it.
std::string table_title(AblationResult const& result, std::string const& metric);

/// As summary.md.
std::string summary_markdown(AblationResult const& result);
/// A floating table for LaTeX with booktabs: arms, seeds, means and intervals, the best in bold, differences to the baseline, p and
/// verdicts; below it what diverged, failed or is missing.
std::string latex_table(AblationResult const& result);
/// For the terminal; begins with `folder`.
std::string summary_page(std::string const& folder, AblationResult const& result);

}  // namespace heed
