#pragma once

#include <string>
#include <vector>

#include "experiments/ablation/tuning.hpp"
#include "experiments/report/ablation_result.hpp"

namespace heed {

/// Writes results.csv, summary.json, summary.md and, if there are probes, probes.npz into the ablation's folder, from the files of its
/// trials (experiments/ablation.md). Returns the page for the terminal. Throws FileError for a damaged trial, Error if the disk is full.
std::string write_results(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned);

/// The result of the trials that are done or have failed. Throws FileError for a damaged trial.
AblationResult summarise(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned);

/// The table cell of a mean's interval: "[1.965, 2.018]", "none: infinite", or "" if there are too few values for an interval.
std::string interval_cell(NumberFormat const& format, Estimate const& estimate);
/// The table cell of seeds with a value, out of `asked`: "6", "4/6", "6 (3 diverged)".
std::string seeds_cell(ArmResult const& arm, std::size_t asked);
/// A table's title: "validation.loss (last, lower is better), mean and 95 % interval over 6 seeds". `metric`: the metric's name as it is to
/// be shown.
std::string table_title(AblationResult const& result, std::string const& metric);

/// The content of summary.md.
std::string summary_markdown(AblationResult const& result);
/// A floating table for LaTeX with booktabs: arms, seeds, means (the best in bold) and intervals, differences to the baseline, p and
/// verdicts; below it, which seeds diverged, failed or are missing.
std::string latex_table(AblationResult const& result);
/// The summary for the terminal; begins with `folder`.
std::string summary_page(std::string const& folder, AblationResult const& result);

}  // namespace heed
