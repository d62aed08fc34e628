#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/config/table.hpp"
#include "experiments/metric/info.hpp"

namespace heed {

// What an ablation or a study may say of its numbers. What few, constant or infinite values do not determine is absent; a mean of values
// that are infinite on both sides is NaN. Random draws come from streams of their own, so that the same values give the same answer. NaN
// among the values is an Error, and so is infinity where nothing else is said. Values up to the largest doubles are squared without
// overflow.

struct Interval {
  double low = 0, high = 0;
  double half_width() const { return high / 2 - low / 2; }
};
inline std::optional<double> half_width_of(std::optional<Interval> const& interval) {
  return interval ? std::optional(interval->half_width()) : std::nullopt;
}

/// Mean and spread of one group of values.
struct Estimate {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;  ///< with n − 1; 0 of one value, or of values that differ by rounding alone; ∞ if a value is infinite
  std::optional<Interval> interval;
  std::string method = "none";  ///< of the interval: "t" or "BCa"; "none" if there is none: deviation is 0 or infinite
  /// [mean, mean] without one.
  Interval interval_or_mean() const { return interval.value_or(Interval{mean, mean}); }
};

/// The mean with its interval: mean ± t_{n−1} s/√n below 20 values, from 20 on the BCa bootstrap, which follows skewed values better but
/// covers too little with few. It ends at the bounds of what is measured: an accuracy's at 1. Values may be infinite. Throws Error if there
/// are no values.
Estimate estimate(std::span<double const> values, double confidence = 0.95, Bounds const& bounds = {});

/// The standard error of a statistic by the jackknife: √((K − 1)/K · Σ_k (θ_k − mean)²), θ_k the statistic without the k-th of K parts of
/// about one size (Tukey 1958; Efron and Tibshirani 1993, chapter 11). Absent of fewer than two values, or if one is not finite.
std::optional<double> jackknife_error(std::span<double const> without);

using Statistic = std::function<double(std::span<double const>)>;

/// The bias-corrected and accelerated bootstrap interval of a statistic: 10,000 resamples, acceleration from the jackknife.
/// Efron 1987, "Better Bootstrap Confidence Intervals"; Efron and Tibshirani 1993, chapter 14. Throws Error for fewer than two values.
Interval bca_interval(std::span<double const> values, Statistic const& statistic, double confidence = 0.95);

/// The values of an arm of an ablation, by seed.
using BySeed = std::map<std::int64_t, double>;

enum class Verdict { better, worse, equivalent, identical, unclear };
std::string_view name(Verdict verdict);

/// What is asked of a comparison.
struct Question {
  Better better = Better::lower;
  double margin = 0;  ///< differences smaller than this do not matter; 0: no equivalence test
  double confidence = 0.95;
  Bounds bounds = {};  ///< of the values that are compared
  double significance() const { return 1 - confidence; }
};

/// An arm beside the baseline: of the differences arm − baseline over the seeds that both have. Where both are the same infinity their
/// difference is 0.
struct Comparison {
  std::size_t seeds = 0;
  double mean = 0;                   ///< 0 without a seed in common; ±∞ if a difference is infinite, NaN if some are ∞ and some −∞
  double deviation = 0;              ///< as in Estimate
  std::optional<Interval> interval;  ///< mean ± t_{n−1} s/√n, within what the bounds allow; absent if deviation is 0 or infinite
  std::optional<double> p_t;         ///< paired t test of this arm alone, two-sided, not corrected; absent where the interval is
  std::optional<double>
      effect;            ///< Cohen's d_z = mean/s, times Hedges' correction for few seeds; absent below three seeds, or if s is 0 or ∞
  double p_alone = 1;    ///< sign-flip test of this arm alone
  double p = 1;          ///< the same, corrected for the number of arms: see sign_flip_test
  std::size_t arms = 1;  ///< that number
  bool ranked = false;   ///< p is of signed ranks
  int direction = 0;     ///< the sign of what the flips sum up
  /// Of |expected difference| ≥ margin: the larger p of two one-sided t tests (Schuirmann 1987). Where all differences are equal, what it
  /// tends to as their spread goes to 0: 0 below the margin, 1 from the margin on. Absent without a margin, below three seeds, whose spread
  /// is one number, and where a difference is infinite.
  std::optional<double> p_equivalence;
  Verdict verdict = Verdict::unclear;
  /// All differences are equal, but for rounding: they have no spread by which a t test could go.
  bool equal() const { return deviation == 0; }
  /// Most seeds go one way and the mean, by a few large differences, the other.
  bool points_both_ways() const { return (direction < 0 && mean > 0) || (direction > 0 && mean < 0); }
};

/// Compares arms with the baseline. A seed that an arm or the baseline lacks is left out for that arm only.
///
/// The verdict is `identical` if all differences, two at least, are 0; `equivalent` if the equivalence test rejects a difference as large
/// as the margin (even one that is sure but smaller); otherwise `better` or `worse` if p ≤ 1 − confidence, unless ranks and mean point to
/// different sides; otherwise `unclear`. Differences that are all equal have no spread: they are `equivalent` if they are below the margin
/// and of three seeds at least. Only p is corrected for the number of arms: intervals, t tests and equivalence tests hold for each arm by
/// itself. Values may be infinite: in the flips a difference counts as at most a thousand million times the values that are compared, of
/// each seed the smallest.
std::vector<Comparison> compare(std::span<BySeed const> arms, BySeed const& baseline, Question const& question);

struct SignFlips {
  std::vector<double> alone;   ///< by arm
  std::vector<double> joint;   ///< by arm, at most one in twenty false alarms among all arms at p ≤ 0.05
  std::vector<bool> ranked;    ///< by arm, whether its differences count by their signed ranks
  std::vector<int> direction;  ///< by arm, the sign of the sum that is tested
};

/// Tests for each arm that its differences (arms × seeds, 0 where a seed is missing) lie symmetrically about 0: they would then have been
/// as likely with the other sign. Statistic: |Σ_s d_s| / √(Σ_s d_s²), which for n seeds rises with Student's |t| and remains defined where
/// t does not. The p-value is the share of sign flips that reach the observed one: of all 2^k up to 16 seeds (Fisher 1935), of 100,000
/// random ones above. The flips of a seed are joint, so that correlations between arms persist; `joint` refers each arm to the maximum of
/// its own and all smaller statistics (step-down: Westfall and Young 1993; Romano and Wolf 2005). Its smallest value, 2^(1−k), does not
/// depend on the number of arms.
///
/// Differences larger than `most` count as that much. Those of an arm of which one is infinite then, or a thousand times the (lower) median
/// size of what is not 0, count by their signed ranks (Wilcoxon 1945), for their sum would be that of one seed alone; equal ones share
/// their rank. Both look at sizes alone, which flips do not change.
SignFlips sign_flip_test(std::vector<std::vector<double>> const& differences, double most = std::numeric_limits<double>::infinity());

/// The smallest p of sign_flip_test with so many seeds: 2^(1−k), and 1 without seeds.
double smallest_p(std::size_t seeds);

/// The expected difference, in standard deviations of the differences between pairs, that so many seeds detect with the given power: of the
/// two-sided paired t test by the noncentral t distribution, at the level that the sign-flip test with its steps of 2^(1−k) attains. Absent
/// where it attains none: below six seeds for 0.05. By simulation the sign-flip test of one arm has a power of 0.72 there with six seeds
/// and 0.79 with eight; the correction for several arms costs more.
std::optional<double> detectable_effect(std::size_t seeds, double significance = 0.05, double power = 0.8);

/// The comparison in words, "additive is 0.012 ± 0.004 nat better than scaled (p = 0.031, 6 seeds)", where ± is the interval's half width;
/// the unit may be empty; numbers have at most eight characters. Where the interval excludes 0 and yet there is no verdict, it says why;
/// where values are infinite, that there is no interval.
std::string sentence(std::string_view arm, std::string_view baseline, std::string_view unit, Comparison const& comparison,
                     Question const& question);

/// A difference as tables have it: "+1.291 ± 0.664", or "+0.910 [0.640, 1.000]" where the interval's middle is not the mean because it ends
/// at a bound.
std::string shown_difference(NumberFormat const& format, double mean, std::optional<Interval> const& interval);

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
