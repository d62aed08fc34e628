#pragma once

#include <cstddef>
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

// Statistics of ablations and studies. Results that are undefined for few, constant or infinite values are absent; a mean of values that
// are infinite on both sides is NaN. Random draws use streams of their own, so that the same values give the same result. NaN values throw
// Error, and so do infinite ones unless stated otherwise. Squares of values up to the largest doubles do not overflow.

struct Interval {
  double low = 0, high = 0;
  double half_width() const { return high / 2 - low / 2; }
};

/// Mean and standard deviation of one group of values.
struct Estimate {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;  ///< with n − 1; 0 for one value, or for values that differ only by rounding; ∞ if a value is infinite
  std::optional<Interval> interval;
  std::string method = "none";  ///< of the interval: "t" or "BCa"; "none" without an interval: deviation is 0 or infinite
};

/// The median; of an even number of values the mean of the two in the middle, of none 0.
double median(std::vector<double> values);

/// sup over t > 0 of log N(t)/t, N(t) the number of other scores at most t below the largest (2605.12697); of scores in falling order.
double gap_function(std::span<double const> scores);

/// The quantile of sorted values, interpolated linearly between the order statistics around (n − 1)·share: NumPy's percentile.
double quantile_of(std::span<double const> sorted, double share);

/// The mean with its interval: mean ± t_{n−1} s/√n below 20 values; from 20 on the BCa bootstrap, which suits skewed values better but
/// covers too little for few. Clipped to the metric's bounds. Values may be infinite. Throws Error without values.
Estimate estimate(std::span<double const> values, double confidence = 0.95, Bounds const& bounds = {});

/// The jackknife standard error of a statistic: √((K − 1)/K · Σ_k (θ_k − mean)²), with θ_k the statistic without the k-th of K parts of
/// about equal size (Tukey 1958; Efron and Tibshirani 1993, chapter 11). Absent for fewer than two values, or if one is not finite.
std::optional<double> jackknife_error(std::span<double const> without);

using Statistic = std::function<double(std::span<double const>)>;

/// 1 for the smallest; of equal ones the mean.
std::vector<double> ranks_of(std::span<double const> values);

/// Spearman's rank correlation of two equally long lists of finite numbers, ties with their mean rank (1904); NaN if one is constant.
double spearman(std::span<double const> x, std::span<double const> y);

/// The bias-corrected and accelerated bootstrap interval of a statistic: 10,000 resamples, acceleration from the jackknife. Efron 1987,
/// "Better Bootstrap Confidence Intervals"; Efron and Tibshirani 1993, chapter 14. Throws Error for fewer than two values.
Interval bca_interval(std::span<double const> values, Statistic const& statistic, double confidence = 0.95);

/// The values of an arm of an ablation, by seed.
using BySeed = std::map<Index, double>;

enum class Verdict { better, worse, equivalent, identical, unclear };
std::string_view name(Verdict verdict);

/// Settings of a comparison.
struct Question {
  Better better = Better::lower;
  double margin = 0;  ///< differences smaller than this are irrelevant; 0: no equivalence test
  double confidence = 0.95;
  Bounds bounds = {};  ///< of the compared values
  double significance() const { return 1 - confidence; }
};

/// Differences arm − baseline over the seeds that both have. A seed on which both diverged, to the same infinity, is no pair.
struct Comparison {
  std::size_t seeds = 0;
  double mean = 0;                   ///< 0 without a common seed; ±∞ if a difference is infinite, NaN with both signs of infinity
  double deviation = 0;              ///< as in Estimate
  std::optional<Interval> interval;  ///< mean ± t_{n−1} s/√n, clipped to the bounds; absent if deviation is 0 or infinite
  std::optional<double> p_t;         ///< paired t test of this arm alone, two-sided, uncorrected; absent where the interval is
  std::optional<double> effect;  ///< Cohen's d_z = mean/s, with Hedges' correction for few seeds; absent below three, or if s is 0 or ∞
  double p_alone = 1;            ///< sign-flip test of this arm alone
  double p = 1;                  ///< the same, corrected for the number of arms: see sign_flip_test
  std::size_t arms = 1;          ///< that number
  bool ranked = false;           ///< p is of signed ranks
  int direction = 0;             ///< sign of the statistic of the sign-flip test
  /// p of the equivalence test against |expected difference| ≥ margin: the larger p of two one-sided t tests (Schuirmann 1987). If all
  /// differences are equal, its limit as their spread goes to 0: 0 below the margin, 1 from the margin on. Absent without a margin, below
  /// three seeds (whose spread is a single number), and with infinite differences.
  std::optional<double> p_equivalence;
  /// Evidence that may be looked at after every pair (metric/evidence.hpp); then p and interval are of that kind, and there is no t test.
  std::optional<double> e;
  Verdict verdict = Verdict::unclear;
  /// All differences are equal up to rounding, so that a t test is impossible.
  bool equal() const { return deviation == 0; }
  /// The seeds' majority and the mean, dominated by few large differences, have different signs.
  bool points_both_ways() const { return (direction < 0 && mean > 0) || (direction > 0 && mean < 0); }
};

/// Size, mean, standard deviation and effect of differences; tests nothing.
Comparison describe(std::span<double const> differences);

/// Compares arms with the baseline. A seed that an arm or the baseline lacks is left out for that arm only.
///
/// The verdict is `identical` if all differences, at least two, are 0; `equivalent` if the equivalence test rejects a difference as large
/// as the margin (even if a smaller difference is significant); otherwise `better` or `worse` if p ≤ 1 − confidence, unless ranks and mean
/// have different signs; otherwise `unclear`. Differences that are all equal have no spread: they are `equivalent` if they are below the
/// margin and there are at least three seeds. Only p is corrected for the number of arms. Values may be infinite: the sign-flip test limits
/// a difference to 10⁹ times the (lower) median over seeds of the smallest compared value.
std::vector<Comparison> compare(std::span<BySeed const> arms, BySeed const& baseline, Question const& question);

struct SignFlips {
  std::vector<double> alone;   ///< by arm
  std::vector<double> joint;   ///< by arm, with a family-wise error rate of 5 % at p ≤ 0.05
  std::vector<bool> ranked;    ///< by arm, whether signed ranks replace its differences
  std::vector<int> direction;  ///< by arm, the sign of the statistic's sum
};

/// Tests for each arm whether its differences (arms × seeds, 0 where a seed is missing) are symmetric about 0, so that each sign is equally
/// likely. Statistic: |Σ_s d_s| / √(Σ_s d_s²), which for n seeds rises with Student's |t| and is defined where t is not. The p-value is the
/// fraction of sign flips that reach the observed statistic: of all 2^k up to 16 seeds (Fisher 1935), of 100,000 random ones above. All
/// arms share a seed's flip, which preserves their correlation; `joint` compares each arm with the maximum of its own and all smaller
/// statistics (step-down: Westfall and Young 1993; Romano and Wolf 2005). Its smallest value is 2^(1−k), however many arms there are.
///
/// Differences larger than `max_size` are clipped to it. If one of an arm's differences is then still infinite, or a thousand times the
/// (lower) median size of the non-zero ones, signed ranks replace them (Wilcoxon 1945), because a single seed would decide their sum; ties
/// share their rank. Both rules depend on sizes alone, which flips do not change.
SignFlips sign_flip_test(std::vector<std::vector<double>> const& differences, double max_size = std::numeric_limits<double>::infinity());

/// The smallest p of sign_flip_test with so many seeds: 2^(1−k), and 1 without seeds.
double smallest_p(std::size_t seeds);

/// Whether a test finds an effect of this size in one simulated comparison.
using FindsEffect = std::function<bool(double effect)>;
/// The effect that it finds with this power: a quantile of the least, up to 64, that it finds in each of so many comparisons.
double effect_found(std::size_t simulations, double power, std::function<FindsEffect(std::size_t simulation)> const& comparison);

/// The expected difference, in standard deviations of the paired differences, at which the joint sign-flip test finds an arm with the given
/// power, if `arms` are compared and the others do not differ from the baseline: by simulation of normal differences that are correlated by
/// 0.5, as those to one baseline are; above 12 seeds as a t test's. Absent where it can find nothing: below six seeds for 0.05.
std::optional<double> detectable_effect(std::size_t seeds, std::size_t arms, double significance = 0.05, double power = 0.8);

/// The number of seeds that detect so large an effect; 0 for no effect.
std::size_t seeds_that_detect(double effect, std::size_t arms, double significance = 0.05, double power = 0.8);

/// "additive is 0.012 ± 0.004 nat better than scaled (p = 0.031, 6 seeds)", where ± is the interval's half width; the unit may be empty. If
/// the interval excludes 0 but there is no verdict, gives the reason; if values are infinite, says that there is no interval.
std::string sentence(std::string_view arm, std::string_view baseline, std::string_view unit, Comparison const& comparison,
                     Question const& question);

/// "0.012 ± 0.004 nat": value and half width with the same decimals, those that show one digit of the width; one more if the value would
/// read as zero. "0.90 [0.64, 1.00]" if the interval is not centred; three digits without one.
std::string measured(double value, std::optional<Interval> const& interval, std::string_view unit);

/// A mean for tables: "1.965 [1.912, 2.018]", or "1.965" without an interval.
std::string shown_mean(NumberFormat const& format, Estimate const& estimate);

/// A difference for tables: "+1.291 ± 0.664", or "+0.910 [0.640, 1.000]" if the interval is asymmetric because it is clipped to a bound.
std::string shown_difference(NumberFormat const& format, double mean, std::optional<Interval> const& interval);

/// A straight line through points.
struct Line {
  double slope = 0, intercept = 0;
  std::optional<double> standard_error;  ///< of the slope; absent with two points
  std::optional<Interval> interval;      ///< slope ± t_{n−2} standard errors; likewise
};

/// Least squares y ≈ intercept + slope·x. Throws Error if sizes differ or there are fewer than two different x.
Line fit_line(std::span<double const> x, std::span<double const> y, double confidence = 0.95);

/// The slope of that line, or with `powers` the exponent of y ∝ xᵖ, and its standard error from those of y; NaN where a y, or its
/// logarithm, is not finite. Throws likewise.
std::pair<double, double> trend_of(std::vector<double> x, std::vector<double> y, std::vector<double> errors, bool powers);

}  // namespace heed
