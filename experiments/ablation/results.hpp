#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/ablation/tuning.hpp"
#include "experiments/report/ablation_result.hpp"

namespace heed {

/// Writes results.csv, summary.json, summary.md and, if there are probes, probes.npz into the ablation's folder, from the files of its
/// trials (experiments/ablation.md). Returns the page for the terminal. Throws FileError for a damaged trial, Error if the disk is full.
std::string write_results(Ablation const& ablation, std::vector<Job> const& jobs, TuningResult const& tuned);

/// The value that tuning selected for a key, else the arm's own, as it was trained; "" if it has none.
std::string value_in(ArmResult const& arm, std::string const& key);

/// Writes summary.json and summary.md of a result beside its results.csv. Returns the page for the terminal.
std::string write_summaries(std::filesystem::path const& folder, AblationResult const& result, nlohmann::ordered_json const& environment);

/// values − others over the seeds, or folds, that both have, in order.
std::vector<double> paired_differences(BySeed const& values, BySeed const& others);

/// Adds the difference of every arm to the baseline: what evidence says of it, else the sign-flip test.
void compare_with_baseline(AblationResult& result, Question const& question, bool by_evidence);

/// Main effects of a grid and the interactions of each two of its keys, relative to the values of the arm `baseline` (else the first).
/// `values`: per arm, by seed; a seed that an arm lacks is left out.
std::vector<Effect> effects_of(Grid const& grid, std::vector<BySeed> const& values, std::size_t baseline, std::string const& unit,
                               Question const& question);
/// A trend for each key with at least three values, all of them numbers. `keys`, `values`: per arm; a seed that an arm of a trend lacks, or
/// where its value is infinite, is left out. `metric` and its values' format are for the sentence. No trend from fewer than two seeds.
std::vector<Trend> trends_of(std::vector<KeyValues> const& keys, std::vector<BySeed> const& values, std::string const& metric);

/// The result of the trials that are done or have failed; where evidence decides, of those that count, with the next seed given out. Throws
/// FileError for a damaged trial.
AblationResult summarise(Ablation const& ablation, std::vector<Job> jobs, TuningResult const& tuned);

/// The arm or the arms with the best mean, in words; nothing if no arm has one.
std::optional<std::string> best_mean(AblationResult const& result);
/// Which arms have a short convolution before attention ("every arm", or their names), in a comparison in which a layer has one or has no
/// softmax; a convolution that one arm alone has explains much of recall. Nothing for other models and comparisons.
std::optional<std::string> convolutions_in_words(Ablation const& ablation);
/// Sentences on arms that differ in data.fold: for the other keys' values the mean over the folds (of the seeds' means) and its interval,
/// and the difference to the baseline's. Folds share training data, so that their values are not independent: the variance of a mean of J
/// folds of F is s²(1/J + 1/(F − 1)), with t of J − 1 degrees of freedom (Nadeau & Bengio 2003, section 3). None without folds.
std::vector<std::string> cross_validation_in_words(Ablation const& ablation, AblationResult const& result);

std::string summary_markdown(AblationResult const& result);
/// A floating table for LaTeX with booktabs: arms, seeds, means (the best in bold) and intervals, differences to the baseline, p and
/// verdicts; below it, which seeds diverged, failed or are missing.
std::string latex_table(AblationResult const& result);
/// The summary for the terminal; begins with `folder`.
std::string summary_page(std::string const& folder, AblationResult const& result);

/// Rewrites the tables of an ablation's folder from its finished trials if the tables lack one or do not exist yet. Does nothing for other
/// folders. Throws ConfigError if there are no tables and ablation.yaml cannot be read (its base is gone), and as write_results() does.
void renew_results(std::filesystem::path const& folder, Folders const& folders);

}  // namespace heed
