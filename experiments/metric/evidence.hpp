#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "experiments/metric/statistics.hpp"

namespace heed {

// Evidence that may be looked at after every pair: bets on the signs of paired differences. Null hypothesis: given what came before, a
// difference is as likely −x as x, as the sign-flip test assumes too. Differences may be infinite (one of two diverged), not NaN.

/// Evidence against "no difference" after each pair: with s_i² = (d_1² + … + d_i²)/i and x_i = d_i/s_i,
///
///     E_k = ½ Σ_c w_c (W_c⁺(k) + W_c⁻(k)),   W_c^±(k) = Π_i exp(±c x_i)/cosh(c x_i)
///
/// for stakes c = 0.4, 0.8, 1.6, ∞ with shares w = 0.10, 0.25, 0.25, 0.40. Each factor has mean 1 under the null, so that E_k ≥ 1/α for any
/// k has a probability of at most α, however one stops (Ville 1939; Waudby-Smith and Ramdas 2024, "Estimating means of bounded random
/// variables by betting"). A difference of 0 changes nothing; an infinite one is a sign without a size.
std::vector<double> evidence(std::span<double const> differences);

/// A confidence sequence: the hull of all μ for which the evidence of d − μ is below 1/significance. All of them, over all numbers of
/// pairs, hold the true difference at once with probability 1 − significance (Howard et al. 2021). Infinite up to five pairs.
Interval confidence_sequence(std::span<double const> differences, double significance = 0.05);

/// Whether the confidence sequence lies between two numbers, one of which may be infinite: infinite differences alone lie at that end.
bool lies_between(double low, double high, std::span<double const> differences, double significance = 0.05);

/// The verdict that is reached at the first pair after which the confidence sequence lies within the margin (equivalent), six differences
/// or more are all 0 (identical), or the evidence is at least arms/significance (better or worse), and is kept. `differences` in the order
/// in which pairs were trained; `arms`: the number of arms that are compared (Bonferroni).
Verdict verdict_by_evidence(std::span<double const> differences, Question const& question, std::size_t arms = 1);

/// Compares an arm with the baseline: that verdict, e = E_k, p = min(1, arms/max E), the confidence sequence as interval, corrected for the
/// number of arms, no t test. Throws Error for NaN.
Comparison compare_by_evidence(std::span<double const> differences, Question const& question, std::size_t arms = 1);

/// The fewest paired seeds after which there can be a verdict better or worse: by evidence the first k at which k differences of one sign
/// and size reach arms/significance, with `arms` beside the baseline; of the sign-flip test, whose smallest p does not depend on them, the
/// first with smallest_p(k) ≤ significance.
std::size_t seeds_for_verdict(bool by_evidence, std::size_t arms, double significance = 0.05);

/// The number of pairs in all at which evidence is expected to reach `threshold` (20 for a verdict at 5 %): the median of 200 continuations
/// that draw from the observed differences. Nothing for fewer than three pairs, or if it is more than 1,000.
std::optional<std::size_t> pairs_that_tell(std::span<double const> differences, double threshold);

/// The difference, in standard deviations of the paired differences, that so many pairs tell with this probability: by simulation of normal
/// ones, as detectable_effect() has it of the sign-flip test. Nothing below six pairs.
std::optional<double> difference_told(std::size_t pairs, double significance = 0.05, double power = 0.8);

/// Which of several verdicts stand if the expected share of false ones among them is to be at most `significance`, however they depend on
/// each other: e-BH, those whose evidence is at least m/(significance k), k the largest number for which the k-th largest is (Wang and
/// Ramdas 2022, "False discovery rate control with e-values").
std::vector<bool> standing(std::span<double const> evidence, double significance = 0.05);

}  // namespace heed
