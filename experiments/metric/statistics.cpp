#include "experiments/metric/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/tools/roots.hpp>
#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/random.hpp"

namespace heed {
namespace {

using boost::math::complement;
using boost::math::students_t;

constexpr std::size_t bootstrap_from = 20, resamples = 10'000;
constexpr std::size_t exact_until = 16, random_flips = 100'000;

double real(std::size_t n) { return static_cast<double>(n); }

double mean_of(std::span<double const> values) { return std::accumulate(values.begin(), values.end(), 0.0) / real(values.size()); }

void require_finite(std::span<double const> values, std::string_view where) {
  for (double const value : values) {
    if (!std::isfinite(value)) throw Error(fmt::format("{}: {} is not a finite number", where, value));
  }
}

/// √(Σ (x − mean)² / (n − 1)); 0 where there is nothing but rounding to measure.
double deviation_of(std::span<double const> values) {
  double const mean = mean_of(values);
  double squares = 0, largest = 0, furthest = 0;
  for (double const value : values) {
    squares += (value - mean) * (value - mean);
    largest = std::max(largest, std::abs(value));
    furthest = std::max(furthest, std::abs(value - mean));
  }
  return furthest <= 1e-12 * largest ? 0 : std::sqrt(squares / (real(values.size()) - 1));
}

Interval t_interval(double centre, double standard_error, double freedom, double confidence) {
  double const half = quantile(complement(students_t(freedom), (1 - confidence) / 2)) * standard_error;
  return {centre - half, centre + half};
}

/// Between the order statistics around (n − 1)·share.
double quantile_of(std::span<double const> sorted, double share) {
  double const place = share * (real(sorted.size()) - 1), below = std::floor(place);
  auto const i = static_cast<std::size_t>(below);
  return i + 1 < sorted.size() ? std::lerp(sorted[i], sorted[i + 1], place - below) : sorted.back();
}

/// Σ D³ / (6 (Σ D²)^{3/2}), D_i how far leaving out value i lowers the statistic below its mean over i.
double acceleration(std::span<double const> values, Statistic const& statistic) {
  std::vector<double> without(values.begin() + 1, values.end()), left(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    left[i] = statistic(without);
    if (i < without.size()) without[i] = values[i];
  }
  double const mean = mean_of(left);
  double squares = 0, cubes = 0;
  for (double const value : left) {
    squares += std::pow(mean - value, 2);
    cubes += std::pow(mean - value, 3);
  }
  return squares == 0 ? 0 : cubes / (6 * std::pow(squares, 1.5));
}

}  // namespace

std::optional<double> jackknife_error(std::span<double const> without) {
  if (without.size() < 2 || !std::ranges::all_of(without, [](double value) { return std::isfinite(value); })) return std::nullopt;
  auto const parts = real(without.size());
  return deviation_of(without) * (parts - 1) / std::sqrt(parts);
}

Interval bca_interval(std::span<double const> values, Statistic const& statistic, double confidence) {
  require_finite(values, "bca_interval");
  std::size_t const n = values.size();
  if (n < 2) throw Error("bca_interval: needs two values or more");
  Stream const stream(0, "bootstrap");
  std::vector<double> drawn(n), replicates(resamples);
  for (std::size_t i = 0; i < resamples; ++i) {
    for (std::size_t j = 0; j < n; ++j) drawn[j] = values[stream.below(i * n + j, n)];
    replicates[i] = statistic(drawn);
  }
  std::sort(replicates.begin(), replicates.end());

  // z0: how far the median of the replicates is from the statistic, in normal quantiles; of equal ones half count as below.
  auto const [first, last] = std::equal_range(replicates.begin(), replicates.end(), statistic(values));
  double const below = real(static_cast<std::size_t>((first - replicates.begin()) + (last - replicates.begin()))) / 2;
  boost::math::normal const normal;
  double const z0 = quantile(normal, std::clamp(below, 0.5, real(resamples) - 0.5) / real(resamples));
  double const a = acceleration(values, statistic);
  auto const bound = [&](double share) {
    double const z = z0 + quantile(normal, share);
    return quantile_of(replicates, cdf(normal, z0 + z / (1 - a * z)));
  };
  return {bound((1 - confidence) / 2), bound((1 + confidence) / 2)};
}

Estimate estimate(std::span<double const> values, double confidence) {
  if (values.empty()) throw Error("estimate: no values");
  require_finite(values, "estimate");
  Estimate result{.count = values.size(), .mean = mean_of(values), .deviation = deviation_of(values), .interval = {}};
  if (result.deviation == 0) return result;
  if (result.count >= bootstrap_from) {
    result.interval = bca_interval(values, mean_of, confidence);
    result.method = "BCa";
  } else {
    double const n = real(result.count);
    result.interval = t_interval(result.mean, result.deviation / std::sqrt(n), n - 1, confidence);
    result.method = "t";
  }
  return result;
}

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::better:
      return "better";
    case Verdict::worse:
      return "worse";
    case Verdict::equivalent:
      return "equivalent";
    case Verdict::unclear:
      break;
  }
  return "unclear";
}

SignFlips sign_flip_test(std::vector<std::vector<double>> const& differences) {
  std::size_t const arms = differences.size(), seeds = arms == 0 ? 0 : differences[0].size();
  SignFlips p{std::vector(arms, 1.0), std::vector(arms, 1.0)};
  if (seeds == 0) return p;

  // Rows of unit length: the statistic of a flip is then |Σ_s sign_s row_s|.
  auto rows = differences;
  for (auto& row : rows) {
    if (row.size() != seeds) throw Error("sign_flip_test: rows of different length");
    require_finite(row, "sign_flip_test");
    double const length = std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0));
    for (double& value : row) value = length == 0 ? 0 : value / length;
  }
  auto const statistic = [&](std::size_t arm, std::span<double const> signs) {
    return std::abs(std::inner_product(signs.begin(), signs.end(), rows[arm].begin(), 0.0));
  };
  std::vector<double> signs(seeds, 1.0), observed(arms);
  for (std::size_t arm = 0; arm < arms; ++arm) observed[arm] = statistic(arm, signs);
  std::vector<std::size_t> rising(arms);
  std::iota(rising.begin(), rising.end(), 0);
  std::sort(rising.begin(), rising.end(), [&](std::size_t a, std::size_t b) { return observed[a] < observed[b]; });

  // A flip and its mirror image give the same |Σ|, so the exact test keeps the first seed's sign.
  bool const exact = seeds <= exact_until;
  std::size_t const flips = exact ? std::size_t{1} << (seeds - 1) : random_flips, words = (seeds + 63) / 64;
  Stream const stream(0, "sign flips");
  std::vector<std::size_t> alone(arms), joint(arms);
  for (std::size_t flip = 0; flip < flips; ++flip) {
    for (std::size_t s = 0; s < seeds; ++s) {
      std::uint64_t const bits = exact ? flip << 1 : stream.bits(flip * words + s / 64);
      signs[s] = (bits >> s % 64 & 1) != 0 ? -1 : 1;
    }
    double largest = 0;
    for (std::size_t const arm : rising) {
      double const value = statistic(arm, signs), reach = observed[arm] - 1e-12;  // equal but for the order of the sum
      largest = std::max(largest, value);
      alone[arm] += value >= reach ? 1 : 0;
      joint[arm] += largest >= reach ? 1 : 0;
    }
  }

  // Random flips count the observed signs among them (Phipson and Smyth 2010), so that p is never 0.
  std::size_t const own = exact ? 0 : 1;
  double before = 0;
  for (auto arm = rising.rbegin(); arm != rising.rend(); ++arm) {
    p.alone[*arm] = real(alone[*arm] + own) / real(flips + own);
    p.joint[*arm] = before = std::max(before, real(joint[*arm] + own) / real(flips + own));
  }
  return p;
}

namespace {

/// Γ(ν/2) / (√(ν/2) Γ((ν−1)/2)): with few values mean/s is too large by its inverse on average; ν > 1 (Hedges 1981).
double hedges_correction(double freedom) { return 1 / (std::sqrt(freedom / 2) * boost::math::tgamma_delta_ratio((freedom - 1) / 2, 0.5)); }

Comparison difference_of(std::vector<double> const& differences, Question const& question) {
  Comparison result{.seeds = differences.size(), .interval = {}, .effect = {}, .p_equivalence = {}};
  if (differences.empty()) return result;
  result.mean = mean_of(differences);
  result.deviation = deviation_of(differences);
  if (result.deviation == 0) return result;

  double const n = real(result.seeds), freedom = n - 1, error = result.deviation / std::sqrt(n);
  result.interval = t_interval(result.mean, error, freedom, question.confidence);
  if (freedom > 1) result.effect = result.mean / result.deviation * hedges_correction(freedom);
  if (question.margin > 0 && freedom > 1) {
    students_t const t(freedom);
    result.p_equivalence =
        std::max(cdf(complement(t, (result.mean + question.margin) / error)), cdf(t, (result.mean - question.margin) / error));
  }
  return result;
}

bool all_equal(Comparison const& c) { return c.seeds >= 2 && c.mean == 0 && c.deviation == 0; }

Verdict judge(Comparison const& c, Question const& question) {
  if (all_equal(c) || (c.p_equivalence && *c.p_equivalence <= question.significance())) return Verdict::equivalent;
  if (c.p > question.significance()) return Verdict::unclear;
  return (c.mean < 0) == (question.better == Better::lower) ? Verdict::better : Verdict::worse;
}

}  // namespace

std::vector<Comparison> compare(std::span<BySeed const> arms, BySeed const& baseline, Question const& question) {
  std::vector<Comparison> result;
  std::vector<std::vector<double>> rows;
  for (auto const& arm : arms) {
    std::vector<double> differences, row;
    for (auto const& [seed, value] : baseline) {
      auto const own = arm.find(seed);
      row.push_back(own == arm.end() ? 0 : own->second - value);
      if (own != arm.end()) differences.push_back(row.back());
    }
    require_finite(differences, "compare");
    result.push_back(difference_of(differences, question));
    rows.push_back(std::move(row));
  }
  auto const p = sign_flip_test(rows);
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i].p_alone = p.alone[i];
    result[i].p = p.joint[i];
    result[i].arms = arms.size();
    result[i].verdict = judge(result[i], question);
  }
  return result;
}

double smallest_p(std::size_t seeds) { return seeds == 0 ? 1 : std::exp2(1 - real(seeds)); }

std::optional<double> detectable_effect(std::size_t seeds, double significance, double power) {
  double const step = smallest_p(seeds);
  double const level = seeds > 40 ? significance : std::floor(significance / step * (1 + 1e-12)) * step;
  if (seeds < 2 || level <= 0) return std::nullopt;
  if (level >= power) return 0;
  double const freedom = real(seeds) - 1, critical = quantile(complement(students_t(freedom), level / 2));
  auto const missing = [&](double shift) { return power - cdf(complement(boost::math::non_central_t(freedom, shift), critical)); };
  double high = critical + 1;
  while (missing(high) > 0) high *= 2;
  std::uintmax_t iterations = 100;
  auto const shift = boost::math::tools::toms748_solve(missing, 0.0, high, boost::math::tools::eps_tolerance<double>(40), iterations);
  return shift.first / std::sqrt(real(seeds));
}

namespace {

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

std::string fixed(double value, int digits) { return typeset(value, fmt::format("{:.{}f}", std::abs(value), digits)); }

/// "0.012 ± 0.004 nat": as many decimals as the uncertainty has, one more if the value would read as zero.
std::string measured(double value, std::optional<Interval> const& interval, std::string_view unit) {
  std::string const after = unit.empty() ? "" : fmt::format(" {}", unit);
  if (!interval) return typeset(value, fmt::format("{:.3g}", std::abs(value))) + after;
  double const half = interval->half_width();
  int digits = decimals(half);
  if (std::abs(value) < 0.5 * std::pow(10, -digits)) digits = std::min(std::max(digits, decimals(value)), digits + 1);
  return fmt::format("{} ± {}{}", fixed(value, digits), fixed(half, digits), after);
}

std::string shown_p(double p) { return p < 0.001 ? "p < 0.001" : fmt::format("p = {:.2g}", p); }

/// Why a difference whose interval excludes 0 is no conclusion; nothing if the interval holds 0.
std::string objection(Comparison const& c, Question const& question) {
  if (!c.interval || (c.interval->low <= 0 && c.interval->high >= 0)) return "";
  if (smallest_p(c.seeds) > question.significance())
    return fmt::format("; its interval excludes 0, but {} seeds cannot reach p ≤ {:.2g}", c.seeds, question.significance());
  if (c.p_alone <= question.significance())
    return fmt::format("; its interval excludes 0, and {} alone, but not corrected for {} arms", shown_p(c.p_alone), c.arms);
  return "; its interval excludes 0 by supposing a normal distribution, which sign flips do not";
}

}  // namespace

std::string sentence(std::string_view arm, std::string_view baseline, std::string_view unit, Comparison const& c,
                     Question const& question) {
  if (c.seeds == 0) return fmt::format("{} and {}: nothing to compare: no seed in common", arm, baseline);
  if (all_equal(c)) return fmt::format("{} and {} are equal on all {} seeds", arm, baseline, c.seeds);
  std::string const seeds = c.seeds == 1 ? "1 seed" : fmt::format("{} seeds", c.seeds);
  std::string const how_sure = fmt::format("({}, {})", shown_p(c.p), seeds);
  if (c.p <= question.significance()) {
    bool const better = (c.mean < 0) == (question.better == Better::lower);
    std::string const result = fmt::format("{} is {} {} than {} {}", arm, measured(std::abs(c.mean), c.interval, unit),
                                           better ? "better" : "worse", baseline, how_sure);
    if (c.verdict != Verdict::equivalent) return result;
    return fmt::format("{}, by less than {} (equivalence test, {})", result, measured(question.margin, {}, unit),
                       shown_p(*c.p_equivalence));
  }
  if (c.verdict == Verdict::equivalent) {
    return fmt::format("no difference between {} and {} larger than {} (equivalence test, {}, {})", arm, baseline,
                       measured(question.margin, {}, unit), shown_p(*c.p_equivalence), seeds);
  }
  return fmt::format("{} and {}: no conclusion: difference {} {}{}", arm, baseline, measured(c.mean, c.interval, unit), how_sure,
                     objection(c, question));
}

Line fit_line(std::span<double const> x, std::span<double const> y, double confidence) {
  if (x.size() != y.size()) throw Error(fmt::format("fit_line: {} x and {} y", x.size(), y.size()));
  require_finite(x, "fit_line");
  require_finite(y, "fit_line");
  if (x.empty() || deviation_of(x) == 0) throw Error("fit_line: needs two different x");

  double const x_mean = mean_of(x), y_mean = mean_of(y);
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - x_mean) * (x[i] - x_mean);
    xy += (x[i] - x_mean) * (y[i] - y_mean);
  }
  Line line{.slope = xy / xx, .intercept = y_mean - xy / xx * x_mean, .standard_error = {}, .interval = {}};
  if (x.size() == 2) return line;

  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) squares += std::pow(y[i] - y_mean - line.slope * (x[i] - x_mean), 2);
  double const freedom = real(x.size()) - 2;
  line.standard_error = std::sqrt(squares / freedom / xx);
  line.interval = t_interval(line.slope, *line.standard_error, freedom, confidence);
  return line;
}

}  // namespace heed
