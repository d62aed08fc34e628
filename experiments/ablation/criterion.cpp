// The statistics of a claim's criteria, what follows from their intervals, and whether an ablation's arms have what they need.

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "experiments/ablation/plan.hpp"
#include "experiments/ablation/results.hpp"
#include "experiments/ablation/tuning.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/scalar.hpp"
#include "experiments/config/table.hpp"
#include "experiments/metric/info.hpp"

namespace heed {

namespace {

constexpr double confidence = 0.95, power = 0.8, normal_quantile = 1.959963984540054;
constexpr Index most_seeds = 10'000;

double t_quantile(double share, double freedom) { return quantile(boost::math::students_t(freedom), share); }

ArmResult const& arm_of(AblationResult const& result, std::string const& name) {
  auto const found = std::ranges::find(result.arms, name, &ArmResult::name);
  if (found != result.arms.end()) return *found;
  auto const names = names_of(result.arms);
  throw Error(fmt::format("there is no arm '{}'{}; arms: {}", name, did_you_mean(name, names), fmt::join(names, ", ")));
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
  if (!number) throw Error(fmt::format("arm '{}' has no number for the key {}", arm.name, key));
  return *number;
}

struct TrendPoint {
  double x, loss, y;
};

/// Whether a point has the smallest or the largest y of those with its x.
bool is_on_edge(TrendPoint const& point, std::vector<TrendPoint> const& tried) {
  double low = point.y, high = point.y;
  for (auto const& each : tried)
    if (each.x == point.x) low = std::min(low, each.y), high = std::max(high, each.y);
  return low < high && (point.y == low || point.y == high);
}

/// The statistic of slope, exponent, spearman and best_exponent by seed, for seeds that have all arms. `remark`: of best values on an edge.
std::vector<double> trends_by_seed(Criterion const& criterion, AblationResult const& result, std::string& remark) {
  auto const& [kind, key, best] = std::tie(criterion.kind, criterion.key, criterion.best);
  std::vector<ArmResult const*> arms;
  for (auto const& arm : result.arms)
    if (meets(criterion.where, [&](std::string const& name) { return value_of(arm, name); })) arms.push_back(&arm);
  if (arms.empty()) throw Error(fmt::format("no arm has {}", fmt::join(criterion.where, ", ")));
  std::vector<double> statistics;
  std::size_t on_edge = 0;  // seeds
  for (auto const& [seed, unused] : arms.front()->values) {
    std::vector<TrendPoint> points;
    for (auto const* const arm : arms)
      if (auto const value = arm->values.find(seed); value != arm->values.end())
        points.push_back({number_of(*arm, key), result.better == "lower" ? value->second : -value->second,
                          best.empty() ? value->second : number_of(*arm, best)});
    if (points.size() != arms.size()) continue;
    if (!best.empty()) {  // of each x the best arm
      auto const tried = points;
      std::ranges::stable_sort(points, {}, [](TrendPoint const& point) { return std::pair(point.x, point.loss); });
      auto const same = [](TrendPoint const& one, TrendPoint const& other) { return one.x == other.x; };
      points.erase(std::unique(points.begin(), points.end(), same), points.end());
      if (std::ranges::any_of(points, [&](TrendPoint const& point) { return is_on_edge(point, tried); })) ++on_edge;
    }
    auto const x = mapped(points, &TrendPoint::x), y = mapped(points, &TrendPoint::y);
    statistics.push_back(kind == "spearman" ? spearman(x, y) : trend_of(x, y, std::vector(x.size(), 0.0), kind != "slope").first);
  }
  if (on_edge > 0) remark = fmt::format("in {} a best {} lies on the edge of what was tried", plural(on_edge, "seed"), last_word(best));
  return statistics;
}

std::vector<double> statistics_of(Criterion const& criterion, AblationResult const& result, std::string& remark) {
  if (criterion.over_key()) return trends_by_seed(criterion, result, remark);
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

/// The fewest seeds above those that there are for which `told` is true.
std::optional<Index> fewest_seeds(std::size_t have, std::function<bool(double)> const& told) {
  for (auto n = static_cast<Index>(have) + 1; n <= most_seeds; n += std::max<Index>(1, n / 50))
    if (told(static_cast<double>(n))) return n;
  return std::nullopt;
}

/// Whether a mean at this distance from its bound is told from it by n seeds with 80 % power.
bool mean_is_told(double distance, double deviation, double n) {
  return (t_quantile(0.5 + confidence / 2, n - 1) + t_quantile(power, n - 1)) * deviation / std::sqrt(n) <= distance;
}

/// Whether Wilson's interval of n seeds, each reaching with this probability, has a verdict with 80 % power.
bool share_is_told(double share, Interval const& bounds, double n) {
  boost::math::binomial const reached(n, share);
  double told = 0;
  for (double k = 0; k <= n; ++k)
    if (verdict_of(wilson(k / n, n), bounds) != ClaimVerdict::unclear) told += pdf(reached, k);
  return told >= power;
}

/// Which values a statistic of a metric can have.
Bounds possible_values(Criterion const& criterion, std::string const& metric) {
  auto const [min, max] = bounds_of(metric);
  if (criterion.kind == "value") return {min, max};
  if (criterion.kind == "spearman") return {-1, 1};
  return criterion.from.empty() ? Bounds{} : Bounds{min - max, max - min};
}

/// A value with its interval, as far as that is possible, against the bounds; unclear without a finite one.
CriterionFinding judged(double value, Interval const& interval, Interval const& bounds, Bounds const& possible = {}) {
  CriterionFinding finding{.value = value, .interval = {}, .seeds = {}};
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return finding;
  finding.interval = {std::clamp(interval.low, possible.min, possible.max), std::clamp(interval.high, possible.min, possible.max)};
  finding.verdict = verdict_of(*finding.interval, bounds);
  return finding;
}

CsvLines selected(Criterion const& criterion, CsvLines const& lines) {
  CsvLines rows;
  std::ranges::copy_if(lines, std::back_inserter(rows), [&](CsvLine const& line) {
    return meets(criterion.where, [&](std::string const& column) { return &line[column]; });
  });
  if (rows.empty() || (criterion.kind == "value" && rows.size() != 1))
    throw Error(fmt::format("{} rows of results.csv have {}", rows.size(), fmt::join(criterion.where, ", ")));
  for (auto const& row : rows) {
    auto const is_same = [&](CsvLine const& other) { return other.number(criterion.key) == row.number(criterion.key); };
    auto const same = criterion.over_key() ? std::ranges::count_if(rows, is_same) : 1;
    if (same > 1) throw Error(fmt::format("{} rows have {} = {}: where must select one curve", same, criterion.key, row[criterion.key]));
  }
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
    try {
      all.criteria.push_back(finding_of(criterion, result));
    } catch (Error const& error) {
      all.criteria.push_back({.value = std::nan(""), .interval = {}, .seeds = {}, .remark = error.what()});
    }
    auto const found = all.criteria.back().verdict;
    if (found == ClaimVerdict::fails || (found == ClaimVerdict::unclear && all.verdict == ClaimVerdict::holds)) all.verdict = found;
  }
  return all;
}

}  // namespace

CriterionFinding finding_of(Criterion const& criterion, AblationResult const& result) {
  std::string remark;
  auto const values = statistics_of(criterion, result, remark);
  CriterionFinding finding{.value = std::nan(""), .interval = {}, .seeds = {}};
  if (values.empty() || std::ranges::any_of(values, [](double value) { return std::isnan(value); })) return finding;
  auto const bounds = criterion.bounds();
  double const n = to_double(values.size());
  std::function<bool(double)> told;  // by so many seeds
  if (criterion.kind == "share") {
    auto const reached = [&](double value) { return criterion.below ? value <= *criterion.reaches : value >= *criterion.reaches; };
    double const share = to_double(std::ranges::count_if(values, reached)) / n;
    finding = judged(share, wilson(share, n), bounds);
    told = [=](double seeds) { return share_is_told(share, bounds, seeds); };
  } else {
    auto const whole = describe(values);
    double const mean = whole.mean, distance = std::min(std::abs(mean - bounds.low), std::abs(mean - bounds.high));
    double const half = n < 2 ? std::nan("") : t_quantile(0.5 + confidence / 2, n - 1) * whole.deviation / std::sqrt(n);
    finding = judged(mean, {mean - half, mean + half}, bounds, possible_values(criterion, result.metric));
    told = [=](double seeds) { return mean_is_told(distance, whole.deviation, seeds); };
  }
  if (finding.interval && finding.verdict == ClaimVerdict::unclear) finding.seeds = fewest_seeds(values.size(), told);
  finding.remark = remark;
  return finding;
}

CriterionFinding finding_of(Criterion const& criterion, CsvRows const& results) {
  auto const rows = selected(criterion, csv_lines(results, "results.csv"));
  if (criterion.kind == "formula") {
    double const furthest = furthest_from_theory(rows);
    return {.value = furthest, .interval = {}, .verdict = verdict_of({furthest, furthest}, criterion.bounds()), .seeds = {}};
  }
  auto const [value, error] = criterion.kind == "value" ? std::pair(rows[0].number("mean"), rows[0].number("standard_error"))
                                                        : trend_over(rows, criterion.key, criterion.kind == "exponent");
  double const half = normal_quantile * error;
  return judged(value, {value - half, value + half}, criterion.bounds());
}

ClaimFinding finding_of(ClaimSettings const& claim, AblationResult const& result) {
  auto all = findings(claim, result);
  all.metric = result.metric;
  auto const left = result.failures.size() + result.missing.size();
  if (left == 0) return all;
  all.incomplete = fmt::format("{} of {} trials are missing or have failed", left, result.arms.size() * result.seeds.size());
  if (all.verdict == ClaimVerdict::holds) all.verdict = ClaimVerdict::unclear;
  return all;
}

ClaimFinding finding_of(ClaimSettings const& claim, CsvRows const& results) { return findings(claim, results); }

void check_claim(Document const& file, Ablation const& ablation) {
  AblationResult planned;  // of one seed
  for (auto const& arm : ablation.arms) {
    auto& each = planned.arms.emplace_back();
    each.name = arm.name, each.keys = keys_of(arm.changes), each.values[1] = 1;
  }
  auto const& criteria = ablation.settings.claim.criteria.items;
  for (std::size_t i = 0; i < criteria.size(); ++i) {
    auto const location = location_of(file, fmt::format("claim.criteria.{}", i));
    if (!criteria[i].where.empty() && !criteria[i].over_key()) throw ConfigError(location, "where: is for the rows of a study");
    try {
      std::string remark;
      statistics_of(criteria[i], planned, remark);
    } catch (Error const& error) {
      throw ConfigError(location, error.what());
    }
  }
}

}  // namespace heed
