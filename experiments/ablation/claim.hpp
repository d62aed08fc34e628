#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/report/ablation_result.hpp"
#include "nn/settings.hpp"

namespace heed {

struct Ablation;

/// `published: {value: 99, seeds: 1, selection: best of 3}`: the number of the source.
struct PublishedFigure : Settings {
  std::optional<double> value;
  std::optional<Index> seeds;
  std::string selection;  ///< "best of 3"; empty: a mean, or not known
  std::vector<Field> fields() override;
};

/// A statistic with a 95 % interval over paired seeds, and its bound: `{kind: difference, arm: local-p, from: scaled, at_least: 0.3}`.
///
///   value        mean of an arm                                  difference   mean of arm − from, paired by seed
///   share        share of seeds whose value reaches `reaches` (at least; `below: true`: at most), Wilson's interval
///   slope        of the metric over the number that a varied key has (`key`), least squares within a seed; mean over seeds
///   exponent     the same of the logarithms of both              spearman     rank correlation within a seed, mean over seeds
///   equivalence  difference within ± `margin`
struct Criterion : Settings {
  std::string kind, arm, from, key;
  std::optional<double> at_least, at_most, reaches, margin;
  bool below = false;
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  /// "difference of local-p and scaled at least 0.3".
  std::string in_words() const;
};

/// `claim:` of an ablation: what a paper says, and when it holds here. Criteria and trials are registered, by their hash, before the first
/// trial is begun; a later change is an amendment (claim.json in the ablation's folder).
struct ClaimSettings : Settings {
  std::string says, source, predicts, cost;
  PublishedFigure published;
  ListOf<Criterion> criteria;
  std::vector<std::string> deviations;  ///< from the published set-up
  bool given() const { return !says.empty(); }
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// What a criterion measures.
struct ClaimFinding {
  double value = 0;
  std::optional<Interval> interval;  ///< nothing for fewer than two seeds, or without a finite value
  std::string verdict;               ///< holds, fails, unclear
  std::optional<Index> seeds;        ///< unclear: with which the interval would exclude the bound with 80 % power, if ≤ 10,000
};

/// holds: every criterion does, and all trials are there. fails: one does. Else unclear.
struct ClaimVerdict {
  std::string verdict;
  std::vector<ClaimFinding> findings;  ///< by criterion
  std::string incomplete;              ///< "2 of 12 trials are missing or have failed"; "": none
};

/// One finding. Throws Error for an arm or a key that the result does not have.
ClaimFinding finding_of(Criterion const& criterion, AblationResult const& result);
ClaimVerdict verdict_of(ClaimSettings const& claim, AblationResult const& result);

/// Registers criteria and trials in the ablation's folder, unless they are the last that were. Throws Error if it cannot be written.
void register_claim(Ablation const& ablation);
/// The registrations in words, oldest first: "registered 2026-11-29 (sha256 …), before any trial", "amended … after 5 trials".
std::vector<std::string> registrations_in(std::filesystem::path const& folder);

/// The verdict and its criteria as sentences; none without a claim.
std::vector<std::string> claim_in_words(Ablation const& ablation, AblationResult const& result);

}  // namespace heed
