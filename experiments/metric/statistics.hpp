#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/metric/info.hpp"

namespace heed {

// What an ablation or a study may say of its numbers. No result is NaN: what few or constant values do not determine is absent. Random
// draws come from streams of their own, so that the same values give the same answer. Values that are not finite are an Error.

struct Interval {
  double low = 0, high = 0;
  double half_width() const { return (high - low) / 2; }
};
inline std::optional<double> half_width_of(std::optional<Interval> const& interval) {
  return interval ? std::optional(interval->half_width()) : std::nullopt;
}

/// Mean and spread of one group of values.
struct Estimate {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;  ///< with n − 1; 0 of one value, or of values that differ by rounding alone
  std::optional<Interval> interval;
  std::string method = "none";  ///< of the interval: "t" or "BCa"; "none" if deviation is 0
};

/// The mean with its interval: mean ± t_{n−1} s/√n below 20 values, from 20 on the BCa bootstrap, which follows skewed values better but
/// covers too little with few. Throws Error if there are no values.
Estimate estimate(std::span<double const> values, double confidence = 0.95);

/// The standard error of a statistic by the jackknife: √((K − 1)/K · Σ_k (θ_k − mean)²), θ_k the statistic without the k-th of K parts of
/// about one size (Tukey 1958; Efron and Tibshirani 1993, chapter 11). Absent of fewer than two values, or if one is not finite.
std::optional<double> jackknife_error(std::span<double const> without);

using Statistic = std::function<double(std::span<double const>)>;

/// The bias-corrected and accelerated bootstrap interval of a statistic: 10,000 resamples, acceleration from the jackknife.
/// Efron 1987, "Better Bootstrap Confidence Intervals"; Efron and Tibshirani 1993, chapter 14. Throws Error for fewer than two values.
Interval bca_interval(std::span<double const> values, Statistic const& statistic, double confidence = 0.95);

/// The values of an arm of an ablation, by seed.
using BySeed = std::map<std::int64_t, double>;

enum class Verdict { better, worse, equivalent, unclear };
std::string_view name(Verdict verdict);

/// What is asked of a comparison.
struct Question {
  Better better = Better::lower;
  double margin = 0;  ///< differences smaller than this do not matter; 0: no equivalence test
  double confidence = 0.95;
  double significance() const { return 1 - confidence; }
};

/// An arm beside the baseline: of the differences arm − baseline over the seeds that both have.
struct Comparison {
  std::size_t seeds = 0;
  double mean = 0;                   ///< 0 without a seed in common
  double deviation = 0;              ///< as in Estimate
  std::optional<Interval> interval;  ///< mean ± t_{n−1} s/√n; absent if deviation is 0
  std::optional<double> effect;  ///< Cohen's d_z = mean/s, times Hedges' correction for few seeds; absent below three seeds or if s is 0
  double p_alone = 1;            ///< sign-flip test of this arm alone
  double p = 1;                  ///< the same, corrected for the number of arms: see sign_flip_test
  std::size_t arms = 1;          ///< that number
  std::optional<double> p_equivalence;  ///< of |expected difference| ≥ margin: the larger p of two one-sided t tests (Schuirmann 1987);
                                        ///< absent below three seeds, whose spread is one number
  Verdict verdict = Verdict::unclear;
};

/// Compares arms with the baseline. A seed that an arm or the baseline lacks is left out for that arm only.
///
/// The verdict is `equivalent` if the equivalence test rejects a difference as large as the margin (even one that is sure but smaller), or
/// if all differences, two at least, are 0; otherwise `better` or `worse` if p ≤ 1 − confidence; otherwise `unclear`. Only p is corrected
/// for the number of arms: intervals and equivalence tests hold for each arm by itself.
std::vector<Comparison> compare(std::span<BySeed const> arms, BySeed const& baseline, Question const& question);

struct SignFlips {
  std::vector<double> alone;  ///< by arm
  std::vector<double> joint;  ///< by arm, at most one in twenty false alarms among all arms at p ≤ 0.05
};

/// Tests for each arm that its differences (arms × seeds, 0 where a seed is missing) lie symmetrically about 0: they would then have been
/// as likely with the other sign. Statistic: |Σ_s d_s| / √(Σ_s d_s²), which for n seeds rises with Student's |t| and remains defined where
/// t does not. The p-value is the share of sign flips that reach the observed one: of all 2^k up to 16 seeds (Fisher 1935), of 100,000
/// random ones above. The flips of a seed are joint, so that correlations between arms persist; `joint` refers each arm to the maximum of
/// its own and all smaller statistics (step-down: Westfall and Young 1993; Romano and Wolf 2005). Its smallest value, 2^(1−k), does not
/// depend on the number of arms.
SignFlips sign_flip_test(std::vector<std::vector<double>> const& differences);

/// The smallest p of sign_flip_test with so many seeds: 2^(1−k), and 1 without seeds.
double smallest_p(std::size_t seeds);

/// The expected difference, in standard deviations of the differences between pairs, that so many seeds detect with the given power: of the
/// two-sided paired t test by the noncentral t distribution, at the level that the sign-flip test with its steps of 2^(1−k) attains. Absent
/// where it attains none: below six seeds for 0.05. By simulation the sign-flip test of one arm has a power of 0.72 there with six seeds
/// and 0.79 with eight; the correction for several arms costs more.
std::optional<double> detectable_effect(std::size_t seeds, double significance = 0.05, double power = 0.8);

/// The comparison in words, "additive is 0.012 ± 0.004 nat better than scaled (p = 0.031, 6 seeds)", where ± is the interval's half width;
/// the unit may be empty. Where the interval excludes 0 and yet there is no verdict, it says why.
std::string sentence(std::string_view arm, std::string_view baseline, std::string_view unit, Comparison const& comparison,
                     Question const& question);

/// A straight line through points.
struct Line {
  double slope = 0, intercept = 0;
  std::optional<double> standard_error;  ///< of the slope; absent with two points
  std::optional<Interval> interval;      ///< slope ± t_{n−2} standard errors; likewise
};

/// Least squares y ≈ intercept + slope·x; of logarithms it gives the exponent of a power law. Throws Error if sizes differ or fewer than
/// two different x are there.
Line fit_line(std::span<double const> x, std::span<double const> y, double confidence = 0.95);

}  // namespace heed
