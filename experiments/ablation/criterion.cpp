// The statistics of a claim's criteria, and what follows from their intervals.

#include <algorithm>
#include <cmath>
#include <map>

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "experiments/ablation/results.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/scalar.hpp"

namespace heed {

namespace {

constexpr double confidence = 0.95, power = 0.8, normal_quantile = 1.959963984540054;
constexpr Index most_seeds = 10'000;

double t_quantile(double share, double freedom) { return quantile(boost::math::students_t(freedom), share); }

ArmResult const& arm_of(AblationResult const& result, std::string const& name) {
  auto const found = std::ranges::find(result.arms, name, &ArmResult::name);
  if (found != result.arms.end()) return *found;
  throw Error(fmt::format("claim.criteria: there is no arm '{}'{}", name, did_you_mean(name, names_of(result.arms))));
}

/// Slope, exponent or rank correlation of points; NaN where one is not finite.
double trend_of(std::string const& kind, std::vector<double> x, std::vector<double> y) {
  if (kind == "spearman") return spearman(x, y);
  if (kind == "exponent")
    for (auto* const list : {&x, &y})
      for (double& value : *list) value = std::log(value);
  return std::ranges::all_of(y, [](double value) { return std::isfinite(value); }) ? fit_line(x, y).slope : std::nan("");
}

/// Whether what `text_of` finds for a name (null: nothing) has the value that each condition "name=value" wants, as text or as a number.
template <class TextOf>
bool meets(std::vector<std::string> const& where, TextOf const& text_of) {
  return std::ranges::all_of(where, [&](std::string const& condition) {
    auto const equals = condition.find('=');
    auto const wanted = condition.substr(equals + 1);
    std::string const* const text = text_of(condition.substr(0, equals));
    auto const number = parse_real(wanted);
    return text && (*text == wanted || (number && parse_real(*text) == number));
  });
}

/// The value of a varied key, named by its last word or whole, in an arm; null: the arm does not have it.
std::string const* value_of(ArmResult const& arm, std::string const& key) {
  auto const found = std::ranges::find_if(arm.keys, [&](auto const& each) { return last_word(each.first) == last_word(key); });
  return found == arm.keys.end() ? nullptr : &found->second;
}

double number_of(ArmResult const& arm, std::string const& key) {
  auto const* const text = value_of(arm, key);
  auto const number = text ? parse_real(*text) : std::nullopt;
  if (!number) throw Error(fmt::format("claim.criteria: arm '{}' has no number for the key {}", arm.name, key));
  return *number;
}

/// The statistic of slope, exponent, spearman and best_exponent by seed, for seeds that have all arms.
std::vector<double> trends_by_seed(Criterion const& criterion, AblationResult const& result) {
  std::vector<ArmResult const*> arms;
  for (auto const& arm : result.arms)
    if (meets(criterion.where, [&](std::string const& key) { return value_of(arm, key); })) arms.push_back(&arm);
  if (arms.empty()) throw Error(fmt::format("claim.criteria: no arm has {}", fmt::join(criterion.where, ", ")));
  bool const best = criterion.kind == "best_exponent";
  double const sign = result.better == "lower" ? 1 : -1;
  std::vector<double> statistics;
  for (auto const& [seed, unused] : arms.front()->values) {
    std::vector<double> x, y;
    std::map<double, std::pair<double, double>> chosen;  // by x, of the best arm: its value, the number of `best`
    for (auto const* const arm : arms) {
      auto const value = arm->values.find(seed);
      if (value == arm->values.end()) break;
      x.push_back(number_of(*arm, criterion.key)), y.push_back(value->second);
      if (!best) continue;
      std::pair const candidate{sign * value->second, number_of(*arm, criterion.best)};
      auto const [at_key, first] = chosen.try_emplace(x.back(), candidate);
      if (!first && candidate.first < at_key->second.first) at_key->second = candidate;
    }
    if (x.size() != arms.size()) continue;
    if (best) {
      x.clear(), y.clear();
      for (auto const& [key, of] : chosen) x.push_back(key), y.push_back(of.second);
    }
    statistics.push_back(trend_of(best ? "exponent" : criterion.kind, x, y));
  }
  return statistics;
}

std::vector<double> statistics_of(Criterion const& criterion, AblationResult const& result) {
  if (criterion.over_key()) return trends_by_seed(criterion, result);
  auto const& values = arm_of(result, criterion.arm).values;
  if (criterion.from.empty()) return mapped(values, &BySeed::value_type::second);
  return paired_differences(values, arm_of(result, criterion.from).values);
}

/// Wilson's interval of a share of n.
Interval wilson(double share, double n) {
  constexpr double z = normal_quantile;
  double const middle = share + z * z / (2 * n), half = z * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  return {(middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)};
}

/// Where the interval lies: all in the bounds, all outside of one, or across.
ClaimVerdict verdict_of(Interval const& interval, Interval const& bounds) {
  if (interval.low >= bounds.low && interval.high <= bounds.high) return ClaimVerdict::holds;
  return interval.high < bounds.low || interval.low > bounds.high ? ClaimVerdict::fails : ClaimVerdict::unclear;
}

/// The fewest seeds above those that there are for which `tells` is true.
template <class Tells>
std::optional<Index> fewest_seeds(std::size_t have, Tells const& tells) {
  for (auto n = static_cast<Index>(have) + 1; n <= most_seeds; n += std::max<Index>(1, n / 50))
    if (tells(static_cast<double>(n))) return n;
  return std::nullopt;
}

/// Whether a mean at this distance from its bound is told from it by n seeds with 80 % power.
bool mean_is_told(double distance, double deviation, double n) {
  return (t_quantile(0.5 + confidence / 2, n - 1) + t_quantile(power, n - 1)) * deviation / std::sqrt(n) <= distance;
}

/// Whether Wilson's interval of n seeds, each reaching with this probability, has a verdict with 80 % power.
bool share_is_told(double share, Interval const& bounds, double n) {
  boost::math::binomial const reached(n, share);
  double told = 0;  // Σ P(k) over the runs of k that have one
  bool inside = false;
  for (double k = 0; k <= n; ++k) {
    if (inside == (verdict_of(wilson(k / n, n), bounds) != ClaimVerdict::unclear)) continue;
    double const below = k > 0 ? cdf(reached, k - 1) : 0;
    told += inside ? below : -below;
    inside = !inside;
  }
  if (inside) told += 1;
  return told >= power;
}

CriterionFinding share_of(Criterion const& criterion, std::vector<double> const& values) {
  auto const n = static_cast<double>(values.size());
  auto const reached = [&](double value) { return criterion.below ? value <= *criterion.reaches : value >= *criterion.reaches; };
  double const share = static_cast<double>(std::ranges::count_if(values, reached)) / n;
  CriterionFinding finding{.value = share, .interval = wilson(share, n), .seeds = {}};
  finding.verdict = verdict_of(*finding.interval, criterion.bounds());
  if (finding.verdict == ClaimVerdict::unclear)
    finding.seeds = fewest_seeds(values.size(), [&](double more) { return share_is_told(share, criterion.bounds(), more); });
  return finding;
}

CsvLines selected(Criterion const& criterion, CsvLines const& lines) {
  CsvLines rows;
  std::ranges::copy_if(lines, std::back_inserter(rows), [&](CsvLine const& line) {
    return meets(criterion.where, [&](std::string const& column) { return &line[column]; });
  });
  if (rows.empty() || (criterion.kind == "value" && rows.size() != 1))
    throw Error(fmt::format("claim.criteria: {} rows of results.csv have {}", rows.size(), fmt::join(criterion.where, ", ")));
  return rows;
}

/// The largest |mean − theory| in standard errors; infinite where a mean without error differs.
double furthest_from_theory(CsvLines const& rows) {
  double furthest = 0;
  for (auto const& row : rows) {
    double const distance = std::abs(row.number("mean") - row.number("theory"));
    if (distance > 0) furthest = std::max(furthest, distance / row.number("standard_error"));
  }
  return furthest;
}

template <class Result>
ClaimFinding findings(ClaimSettings const& claim, Result const& result) {
  ClaimFinding all;
  for (auto const& criterion : claim.criteria.items) {
    all.criteria.push_back(finding_of(criterion, result));
    auto const found = all.criteria.back().verdict;
    if (found == ClaimVerdict::fails || (found == ClaimVerdict::unclear && all.verdict == ClaimVerdict::holds)) all.verdict = found;
  }
  return all;
}

}  // namespace

CriterionFinding finding_of(Criterion const& criterion, AblationResult const& result) {
  auto const values = statistics_of(criterion, result);
  CriterionFinding finding{.value = std::nan(""), .interval = {}, .seeds = {}};
  if (values.empty() || std::ranges::any_of(values, [](double value) { return std::isnan(value); })) return finding;
  if (criterion.kind == "share") return share_of(criterion, values);
  auto const whole = estimate(values, confidence);
  finding.value = whole.mean;
  if (!std::isfinite(whole.mean) || !std::isfinite(whole.deviation) || values.size() < 2) return finding;
  auto const n = static_cast<double>(values.size());
  double const half = t_quantile(0.5 + confidence / 2, n - 1) * whole.deviation / std::sqrt(n);
  finding.interval = Interval{whole.mean - half, whole.mean + half};
  auto const bounds = criterion.bounds();
  finding.verdict = verdict_of(*finding.interval, bounds);
  if (finding.verdict != ClaimVerdict::unclear) return finding;
  double const distance = std::min(std::abs(whole.mean - bounds.low), std::abs(whole.mean - bounds.high));
  finding.seeds = fewest_seeds(values.size(), [&](double more) { return mean_is_told(distance, whole.deviation, more); });
  return finding;
}

CriterionFinding finding_of(Criterion const& criterion, CsvRows const& results) {
  auto const rows = selected(criterion, csv_lines(results, "results.csv"));
  CriterionFinding finding{.interval = {}, .seeds = {}};
  if (criterion.kind == "formula") {
    finding.value = furthest_from_theory(rows);
    finding.verdict = finding.value <= *criterion.within ? ClaimVerdict::holds : ClaimVerdict::fails;
    return finding;
  }
  auto const [value, error] = criterion.kind == "value" ? std::pair(rows[0].number("mean"), rows[0].number("standard_error"))
                                                        : trend_over(rows, criterion.key, criterion.kind == "exponent");
  finding.value = value;
  if (!std::isfinite(value) || !std::isfinite(error)) return finding;
  finding.interval = Interval{value - normal_quantile * error, value + normal_quantile * error};
  finding.verdict = verdict_of(*finding.interval, criterion.bounds());
  return finding;
}

ClaimFinding finding_of(ClaimSettings const& claim, AblationResult const& result) {
  auto all = findings(claim, result);
  auto const left = result.failures.size() + result.missing.size();
  if (left == 0) return all;
  all.incomplete = fmt::format("{} of {} trials are missing or have failed", left, result.arms.size() * result.seeds.size());
  if (all.verdict == ClaimVerdict::holds) all.verdict = ClaimVerdict::unclear;
  return all;
}

ClaimFinding finding_of(ClaimSettings const& claim, CsvRows const& results) { return findings(claim, results); }

}  // namespace heed
