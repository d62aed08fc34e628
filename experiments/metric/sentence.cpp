#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "experiments/metric/statistics.hpp"

namespace heed {

namespace {

/// Whether an interval is mean ± half of its width: one that ends at a bound is not.
bool is_centred(Interval const& interval, double mean) {
  double const middle = interval.low / 2 + interval.high / 2;
  return std::abs(middle - mean) <= 1e-9 * std::max(std::abs(interval.low), std::abs(interval.high));
}

/// Decimals that show one digit of a number, two if the first is 1.
int decimals(double value) {
  if (value == 0) return 0;
  double const exponent = std::floor(std::log10(std::abs(value)));
  bool const one = std::abs(value) < 2 * std::pow(10, exponent);
  return std::clamp(static_cast<int>(-exponent) + (one ? 1 : 0), 0, 15);
}

/// With a minus sign as long as a plus sign, and none before a zero.
std::string typeset(double value, std::string const& magnitude) {
  bool const zero = magnitude.find_first_not_of("0.") == magnitude.npos;
  return value < 0 && !zero ? "−" + magnitude : magnitude;
}

std::string fixed(double value, int digits) { return typeset(value, short_number(std::abs(value), digits)); }

/// Three digits, but for what has more before its point.
std::string three_digits(double value) {
  double const size = std::abs(value);
  if (!std::isfinite(size) || size >= 1e6) return fixed(value, 0);
  if (size > 0 && size < 1e-4) return fixed(value, 12);
  return typeset(value, fmt::format("{:.3g}", size));
}

std::optional<Interval> turned(std::optional<Interval> const& interval) {
  return interval ? std::optional(Interval{-interval->high, -interval->low}) : std::nullopt;
}

std::string shown_p(double p) { return p < 0.001 ? "p < 0.001" : fmt::format("p = {:.2g}", p); }

/// "(p = 0.031, 6 seeds)".
std::string how_sure(Comparison const& c) {
  if (c.e) return fmt::format("(e = {:.3g}, {}, {})", *c.e, shown_p(c.p), plural(c.seeds, "pair"));
  return fmt::format("({}{}, {})", shown_p(c.p), c.ranked ? " by signed ranks" : "", plural(c.seeds, "seed"));
}

std::string by_what(Comparison const& c) {
  if (c.e) return "the interval lies within the margin";
  return c.equal() ? "all differences are equal" : fmt::format("equivalence test, {}", shown_p(*c.p_equivalence));
}

/// Why there is no interval of infinite values; nothing if they are finite.
std::string without_interval(Comparison const& c) { return std::isfinite(c.mean) ? "" : "; no interval, for values are infinite"; }

/// Why a difference whose interval excludes 0 is no conclusion; nothing if the interval holds 0.
std::string objection(Comparison const& c, Question const& question) {
  if (c.e) return "";
  if (c.points_both_ways()) return "; most seeds have the opposite sign of the mean, which a few large differences dominate";
  if (!c.interval || (c.interval->low <= 0 && c.interval->high >= 0)) return "";
  if (smallest_p(c.seeds) > question.significance())
    return fmt::format("; its interval excludes 0, but {} seeds cannot reach p ≤ {:.2g}", c.seeds, question.significance());
  if (c.p_alone <= question.significance())
    return fmt::format("; its interval excludes 0, and {} alone, but not corrected for {} arms", shown_p(c.p_alone), c.arms);
  return "; its interval excludes 0 under the assumption of a normal distribution, which sign flips do not make";
}

}  // namespace

std::string measured(double value, std::optional<Interval> const& interval, std::string_view unit) {
  std::string const after = unit.empty() ? "" : fmt::format(" {}", unit);
  double const half = interval ? interval->half_width() : 0;
  if (half == 0) return three_digits(value) + after;
  bool const cut = !is_centred(*interval, value);
  int digits = decimals(half);
  if (std::abs(value) < 0.5 * std::pow(10, -digits)) digits = std::min(std::max(digits, decimals(value)), digits + 1);
  if (cut) return fmt::format("{} [{}, {}]{}", fixed(value, digits), fixed(interval->low, digits), fixed(interval->high, digits), after);
  return fmt::format("{} ± {}{}", fixed(value, digits), fixed(half, digits), after);
}

std::string sentence(std::string_view arm, std::string_view baseline, std::string_view unit, Comparison const& c,
                     Question const& question) {
  if (c.seeds == 0) return fmt::format("{} and {}: nothing to compare: no seed in common", arm, baseline);
  if (c.verdict == Verdict::identical) return fmt::format("{} and {} are identical on all {} seeds", arm, baseline, c.seeds);
  std::string const margin = measured(question.margin, {}, unit);
  if (c.p <= question.significance() && !c.points_both_ways()) {
    bool const better = (c.direction < 0) == (question.better == Better::lower);
    auto const size = std::isnan(c.mean)   ? std::string()
                      : std::isinf(c.mean) ? "infinitely "
                                           : measured(std::abs(c.mean), c.mean < 0 ? turned(c.interval) : c.interval, unit) + " ";
    std::string const result =
        fmt::format("{} is {}{} than {} {}{}", arm, size, better ? "better" : "worse", baseline, how_sure(c), without_interval(c));
    if (c.verdict != Verdict::equivalent) return result;
    return fmt::format("{}, by less than {} ({})", result, margin, by_what(c));
  }
  if (c.e && (c.verdict == Verdict::better || c.verdict == Verdict::worse))
    return fmt::format("{} is {} than {} on most pairs {}, but not in the mean, which few large differences dominate: {}", arm,
                       name(c.verdict), baseline, how_sure(c), measured(c.mean, c.interval, unit));
  if (c.verdict == Verdict::equivalent)
    return fmt::format("no difference between {} and {} larger than {} ({}, {} seeds)", arm, baseline, margin, by_what(c), c.seeds);
  if (std::isnan(c.mean))
    return fmt::format("{} and {}: no conclusion: each is infinite on seeds where the other is not {}", arm, baseline, how_sure(c));
  return fmt::format("{} and {}: no conclusion: difference {} {}{}{}", arm, baseline, measured(c.mean, c.interval, unit), how_sure(c),
                     without_interval(c), objection(c, question));
}

std::string shown_mean(NumberFormat const& format, Estimate const& estimate) {
  auto const& interval = estimate.interval;
  return format(estimate.mean) + (interval ? " " + format.interval(interval->low, interval->high) : "");
}

std::string shown_difference(NumberFormat const& format, double mean, std::optional<Interval> const& interval) {
  if (!interval) return format.difference(mean, {});
  if (is_centred(*interval, mean)) return format.difference(mean, interval->half_width());
  return fmt::format("{} {}", format.difference(mean, {}), format.interval(interval->low, interval->high));
}

}  // namespace heed
