#include "experiments/metric/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/index.hpp"
#include "autograd/random.hpp"

namespace heed {
namespace {

using boost::math::complement;
using boost::math::students_t;

constexpr std::size_t bootstrap_from = 20, resamples = 10'000;
constexpr double rounding = 1e-12;  ///< what values may differ by, as a share of their size, and be equal

/// Of the power of two by which values are divided before they are summed or squared, which rounds nothing: 0 but for huge and tiny ones.
int exponent_of(std::span<double const> values) {
  constexpr int ordinary = 300;
  double largest = 0;
  for (double const value : values) largest = std::max(largest, std::abs(value));
  if (largest == 0 || !std::isfinite(largest)) return 0;
  int const exponent = std::ilogb(largest);
  return std::abs(exponent) < ordinary ? 0 : exponent;
}

std::vector<double> scaled(std::span<double const> values, int exponent) {
  return mapped(values, [&](double value) { return std::scalbn(value, exponent); });
}

double mean_of(std::span<double const> values) {
  int const exponent = exponent_of(values);
  if (exponent != 0) return std::scalbn(mean_of(scaled(values, -exponent)), exponent);
  return std::accumulate(values.begin(), values.end(), 0.0) / to_double(values.size());
}

void require_numbers(std::span<double const> values, std::string_view where) {
  if (std::ranges::any_of(values, [](double value) { return std::isnan(value); }))
    throw Error(fmt::format("{}: NaN is not a number", where));
}

void require_finite(std::span<double const> values, std::string_view where) {
  for (double const value : values)
    if (!std::isfinite(value)) throw Error(fmt::format("{}: {} is not a finite number", where, value));
}

/// √(Σ (x − mean)² / (n − 1)); 0 where there is nothing but rounding to measure.
double deviation_of(std::span<double const> values) {
  if (std::ranges::any_of(values, [](double value) { return std::isinf(value); })) return std::numeric_limits<double>::infinity();
  if (int const exponent = exponent_of(values); exponent != 0) return std::scalbn(deviation_of(scaled(values, -exponent)), exponent);
  double const mean = mean_of(values);
  double squares = 0, largest = 0, furthest = 0;
  for (double const value : values) {
    squares += (value - mean) * (value - mean);
    largest = std::max(largest, std::abs(value));
    furthest = std::max(furthest, std::abs(value - mean));
  }
  return furthest <= rounding * largest ? 0 : std::sqrt(squares / (to_double(values.size()) - 1));
}

Interval t_interval(double centre, double standard_error, double freedom, double confidence) {
  double const half = quantile(complement(students_t(freedom), (1 - confidence) / 2)) * standard_error;
  return {centre - half, centre + half};
}

/// As much of an interval as lies within bounds; nothing if it has no finite ends.
std::optional<Interval> within(Bounds const& bounds, Interval const& interval) {
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return std::nullopt;
  return Interval{std::clamp(interval.low, bounds.min, bounds.max), std::clamp(interval.high, bounds.min, bounds.max)};
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

Interval bootstrapped_mean(std::span<double const> values, double confidence) {
  int const exponent = exponent_of(values);
  if (exponent == 0) return bca_interval(values, mean_of, confidence);
  auto const [low, high] = bca_interval(scaled(values, -exponent), mean_of, confidence);
  return {std::scalbn(low, exponent), std::scalbn(high, exponent)};
}

/// Γ(ν/2) / (√(ν/2) Γ((ν−1)/2)): with few values mean/s is too large by its inverse on average; ν > 1 (Hedges 1981).
double hedges_correction(double freedom) { return 1 / (std::sqrt(freedom / 2) * boost::math::tgamma_delta_ratio((freedom - 1) / 2, 0.5)); }

/// p of the equivalence test for differences that are all equal, for which there is no t test: the limit of the two one-sided tests as the
/// spread goes to 0. It alone decides the verdict on them.
double p_equivalence_of_equal(double difference, double margin) { return std::abs(difference) < margin * (1 - rounding) ? 0 : 1; }

Comparison difference_of(std::vector<double> const& differences, Question const& question) {
  Comparison result = describe(differences);
  if (differences.empty()) return result;
  double const n = to_double(result.seeds), freedom = n - 1, error = result.deviation / std::sqrt(n);
  bool const tests_equivalence = question.margin > 0 && freedom > 1;
  if (result.equal() && tests_equivalence) result.p_equivalence = p_equivalence_of_equal(result.mean, question.margin);
  if (result.equal() || std::isinf(result.deviation)) return result;

  double const max_difference = question.bounds.max - question.bounds.min;
  result.interval = within({-max_difference, max_difference}, t_interval(result.mean, error, freedom, question.confidence));
  result.p_t = 2 * cdf(complement(students_t(freedom), std::abs(result.mean) / error));
  if (tests_equivalence) {
    students_t const t(freedom);
    result.p_equivalence =
        std::max(cdf(complement(t, (result.mean + question.margin) / error)), cdf(t, (result.mean - question.margin) / error));
  }
  return result;
}

Verdict judge(Comparison const& c, Question const& question) {
  if (c.seeds >= 2 && c.equal() && c.mean == 0) return Verdict::identical;
  if (c.p_equivalence && *c.p_equivalence <= question.significance()) return Verdict::equivalent;
  if (c.p > question.significance() || c.points_both_ways()) return Verdict::unclear;
  return (c.direction < 0) == (question.better == Better::lower) ? Verdict::better : Verdict::worse;
}

/// The bound from which on a difference only shows that training diverged: 10⁹ times a typical size of the values, which is the (lower)
/// median over seeds of the smallest |value| among arms and baseline. Infinity if that is 0.
double largest_counted(std::span<BySeed const> arms, BySeed const& baseline) {
  std::vector<double> sizes;
  for (auto const& [seed, value] : baseline) {
    double min_size = std::abs(value);
    for (auto const& arm : arms)
      if (auto const own = arm.find(seed); own != arm.end()) min_size = std::min(min_size, std::abs(own->second));
    sizes.push_back(min_size);
  }
  std::ranges::sort(sizes);
  double const usual = sizes.empty() ? 0 : sizes[(sizes.size() - 1) / 2];
  return usual > 0 ? 1e9 * usual : std::numeric_limits<double>::infinity();
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  auto const middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double gap_function(std::span<double const> scores) {
  double largest = 0;
  for (std::size_t k = 2; k < scores.size(); ++k)
    if (double const gap = scores.front() - scores[k]; gap > 0) largest = std::max(largest, std::log(static_cast<double>(k)) / gap);
  return largest;
}

double quantile_of(std::span<double const> sorted, double share) {
  double const position = share * (to_double(sorted.size()) - 1), below = std::floor(position);
  auto const i = static_cast<std::size_t>(below);
  return i + 1 < sorted.size() ? std::lerp(sorted[i], sorted[i + 1], position - below) : sorted.back();
}

std::optional<double> jackknife_error(std::span<double const> without) {
  if (without.size() < 2 || !std::ranges::all_of(without, [](double value) { return std::isfinite(value); })) return std::nullopt;
  auto const parts = to_double(without.size());
  return deviation_of(without) * (parts - 1) / std::sqrt(parts);
}

std::vector<double> ranks_of(std::span<double const> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> result(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    for (std::size_t i = first; i <= last; ++i) result[order[i]] = static_cast<double>(first + last) / 2 + 1;
    first = last + 1;
  }
  return result;
}

double spearman(std::span<double const> x, std::span<double const> y) {
  auto const a = ranks_of(x), b = ranks_of(y);
  double const middle = static_cast<double>(x.size() + 1) / 2;
  double both = 0, of_a = 0, of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - middle) * (b[i] - middle);
    of_a += (a[i] - middle) * (a[i] - middle);
    of_b += (b[i] - middle) * (b[i] - middle);
  }
  return of_a > 0 && of_b > 0 ? both / std::sqrt(of_a * of_b) : std::nan("");
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
  double const below = to_double(static_cast<std::size_t>((first - replicates.begin()) + (last - replicates.begin()))) / 2;
  boost::math::normal const normal;
  double const z0 = quantile(normal, std::clamp(below, 0.5, to_double(resamples) - 0.5) / to_double(resamples));
  double const a = acceleration(values, statistic);
  auto const bound = [&](double share) {
    double const z = z0 + quantile(normal, share);
    return quantile_of(replicates, cdf(normal, z0 + z / (1 - a * z)));
  };
  return {bound((1 - confidence) / 2), bound((1 + confidence) / 2)};
}

Estimate estimate(std::span<double const> values, double confidence, Bounds const& bounds) {
  if (values.empty()) throw Error("estimate: no values");
  require_numbers(values, "estimate");
  Estimate result{.count = values.size(), .mean = mean_of(values), .deviation = deviation_of(values), .interval = {}};
  if (result.deviation == 0 || std::isinf(result.deviation)) return result;
  bool const bootstrap = result.count >= bootstrap_from;
  double const n = to_double(result.count);
  result.interval = within(bounds, bootstrap ? bootstrapped_mean(values, confidence)
                                             : t_interval(result.mean, result.deviation / std::sqrt(n), n - 1, confidence));
  if (result.interval) result.method = bootstrap ? "BCa" : "t";
  return result;
}

std::string_view name(Verdict verdict) {
  static constexpr std::array<std::string_view, 5> names{"better", "worse", "equivalent", "identical", "unclear"};
  return at(names, verdict);
}

Comparison describe(std::span<double const> differences) {
  Comparison result{.seeds = differences.size(), .interval = {}, .p_t = {}, .effect = {}, .p_equivalence = {}, .e = {}};
  if (differences.empty()) return result;
  result.mean = mean_of(differences);
  result.deviation = deviation_of(differences);
  double const freedom = to_double(result.seeds) - 1;
  if (freedom > 1 && !result.equal() && std::isfinite(result.deviation))
    result.effect = result.mean / result.deviation * hedges_correction(freedom);
  return result;
}

std::vector<Comparison> compare(std::span<BySeed const> arms, BySeed const& baseline, Question const& question) {
  std::vector<Comparison> result;
  std::vector<std::vector<double>> rows;
  for (auto const& arm : arms) {
    std::vector<double> differences, row;
    for (auto const& [seed, value] : baseline) {
      auto const own = arm.find(seed);
      bool const pair = own != arm.end() && !(std::isinf(value) && own->second == value);
      row.push_back(pair ? own->second - value : 0);
      if (pair) differences.push_back(row.back());
    }
    require_numbers(differences, "compare");
    result.push_back(difference_of(differences, question));
    rows.push_back(std::move(row));
  }
  auto const p = sign_flip_test(rows, largest_counted(arms, baseline));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i].p_alone = p.alone[i];
    result[i].p = p.joint[i];
    result[i].arms = arms.size();
    result[i].ranked = p.ranked[i];
    result[i].direction = p.direction[i];
    result[i].verdict = judge(result[i], question);
  }
  return result;
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
  double const freedom = to_double(x.size()) - 2;
  line.standard_error = std::sqrt(squares / freedom / xx);
  line.interval = t_interval(line.slope, *line.standard_error, freedom, confidence);
  return line;
}

std::pair<double, double> trend_of(std::vector<double> x, std::vector<double> y, std::vector<double> errors, bool powers) {
  for (std::size_t i = 0; powers && i < x.size(); ++i) {
    errors[i] /= y[i];
    x[i] = std::log(x[i]);
    y[i] = std::log(y[i]);
  }
  if (!std::ranges::all_of(y, [](double value) { return std::isfinite(value); })) return {std::nan(""), std::nan("")};
  double const slope = fit_line(x, y).slope, middle = mean_of(x);
  double squares = 0, variance = 0;
  for (double const value : x) squares += (value - middle) * (value - middle);
  for (std::size_t i = 0; i < x.size(); ++i) variance += std::pow((x[i] - middle) / squares * errors[i], 2);
  return {slope, std::sqrt(variance)};
}

}  // namespace heed
