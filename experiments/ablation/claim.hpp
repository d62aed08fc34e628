#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/config.hpp"
#include "experiments/folder/csv.hpp"
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

/// A statistic with a 95 % interval, and its bound: `{kind: difference, arm: local-p, from: scaled, at_least: 0.3}`.
///
/// Of an ablation, over paired seeds:
///   value        mean of an arm                                  difference   mean of arm − from, paired by seed
///   share        share of seeds whose value reaches `reaches` (at least; `below: true`: at most), Wilson's interval
///   slope        of the metric over the number that a varied key has (`key`), least squares within a seed; mean over seeds
///   exponent     the same of the logarithms of both              spearman     rank correlation within a seed, mean over seeds
///   equivalence  difference within ± `margin`
///   best_exponent  exponent over `key` of the number that the varied key `best` (a learning rate) has in the best arm, within a seed
/// Of those over a key, `where` selects arms by varied keys ([model.parametrization=standard]).
///
/// Of a study, over the rows of results.csv that `where` selects ([quantity=entropy, keys=64]), by their standard errors:
///   value        the mean of the only row                        formula      all rows lie within `within` standard errors of `theory`
///   slope        of the mean over the column `key`               exponent     the same of the logarithms of both
struct Criterion : Settings {
  std::string kind, arm, from, key, best;
  std::vector<std::string> where;
  std::optional<double> at_least, at_most, reaches, margin, within;
  bool below = false;
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  bool over_key() const { return kind == "slope" || kind == "exponent" || kind == "spearman" || kind == "best_exponent"; }
  /// What the interval must lie in.
  Interval bounds() const;
  /// "difference of local-p and scaled at least 0.3", which is registered; with a metric to show, "validation.accuracy of 8 at least 0.9".
  std::string in_words(std::string const& metric = "") const;
};

/// `claim:` of an ablation or a study: what a paper says, and when it holds here. Criteria and trials are registered, by their hash, before
/// the first trial is begun, with the metric; a later change is an amendment (claim.json in the folder).
struct ClaimSettings : Settings {
  std::string says, source, predicts, cost;
  PublishedFigure published;
  ListOf<Criterion> criteria;
  std::vector<std::string> deviations;  ///< from the published set-up
  bool given() const { return !says.empty(); }
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  bool from_word(std::string_view text) override { return text == "none"; }
  std::vector<std::string> short_words() override { return {"none"}; }
  std::string word() override { return given() ? "" : "none"; }
};

enum class ClaimVerdict { holds, fails, unclear };
std::string name(ClaimVerdict verdict);

/// What a criterion measures.
struct CriterionFinding {
  double value = 0;
  std::optional<Interval> interval;  ///< within the bounds of the metric; nothing for fewer than two seeds, or without a finite value
  ClaimVerdict verdict = ClaimVerdict::unclear;
  std::optional<Index> seeds;  ///< unclear: with which the interval would exclude the bound with 80 % power, if ≤ 10,000
  std::string remark = {};     ///< why there is no value, or that a best value lies on the edge of its grid
  /// "0.58 [0.56, 0.59]".
  std::string in_words() const;
  /// "unclear (34 seeds would tell); in 2 seeds a best lr lies on the edge of what was tried".
  std::string verdict_in_words() const;
};

/// holds: every criterion does, and all trials are there. fails: one does. Else unclear.
struct ClaimFinding {
  ClaimVerdict verdict = ClaimVerdict::holds;
  std::vector<CriterionFinding> criteria;
  std::string metric;      ///< of an ablation
  std::string incomplete;  ///< "2 of 12 trials are missing or have failed"; "": none
};

/// One finding. Throws Error for an arm or a key that the result does not have.
CriterionFinding finding_of(Criterion const& criterion, AblationResult const& result);
/// All; one that cannot be judged is unclear and says why.
ClaimFinding finding_of(ClaimSettings const& claim, AblationResult const& result);
/// The same of a study's results.csv. Throws Error for a column that it does not have, or a `where` that selects no row, or not one, or
/// several with the same x.
CriterionFinding finding_of(Criterion const& criterion, CsvRows const& results);
ClaimFinding finding_of(ClaimSettings const& claim, CsvRows const& results);

/// Throws ConfigError, by place, for criteria of a study, an arm that there is not, a `where` that no arm has, and a key that is no number.
void check_claim(Document const& file, Ablation const& ablation);
/// The same for criteria of an ablation in the file of a study.
void check_claim(Document const& file, ClaimSettings const& claim);

/// What is registered beside the criteria.
struct Registration {
  std::string metric;               ///< "validation.loss (last)"; of a study "", also in registrations of older revisions
  std::vector<std::string> trials;  ///< their names; of a study the hash of its configuration, which decides the cells
  std::filesystem::path done;  ///< folder of the trials or cells: those of an earlier set-up count, too, for their results may be known
};
Registration registration_of(Ablation const& ablation);
/// In which words the claim differs from the folder's last registration: "criteria and metric"; "": in none. Throws FileError.
std::string changed_since_registration(std::filesystem::path const& folder, ClaimSettings const& claim, Registration const& now);
/// Registers a claim that does, with the number of trials or cells that have ended. Whether it did. Throws Error.
bool register_claim(std::filesystem::path const& folder, ClaimSettings const& claim, Registration const& now);
/// put_aside(), but the registrations stay, with the number of trials or cells that have ended in `done`.
void put_registered_aside(std::filesystem::path const& folder, std::filesystem::path const& done);
/// The registrations in words, oldest first: "registered 2026-11-29 (sha256 …), before any trial had ended", "amended … (criteria; …), when
/// 5 trials had ended".
std::vector<std::string> registrations_in(std::filesystem::path const& folder);

/// The verdict, its criteria and its registrations as sentences.
std::vector<std::string> claim_in_words(ClaimSettings const& claim, ClaimFinding const& finding, std::filesystem::path const& folder);

}  // namespace heed
