#include "experiments/metric/evidence.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "autograd/error.hpp"
#include "autograd/random.hpp"

namespace heed {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr std::array stakes{0.4, 0.8, 1.6, infinity},
    capital_shares{0.10, 0.25, 0.25, 0.40};  // of the bets, and their parts of the capital

/// The capital of those who bet on positive and on negative signs, pair by pair.
class Betting {
 public:
  void add(double difference) {
    if (std::isnan(difference)) throw Error("evidence: NaN is not a difference");
    if (std::isfinite(difference)) length_ = std::hypot(length_, difference), finite_ += 1;  // whose squares do not overflow
    if (difference == 0) return;
    double const x = std::isinf(difference) ? difference : difference / (length_ / std::sqrt(finite_));
    for (std::size_t i = 0; i < stakes.size(); ++i) {
      double const factor = 2 / (1 + std::exp(-2 * stakes[i] * std::abs(x)));  // exp(cx)/cosh(cx), which never overflows
      for_[i] = std::min(for_[i] * (x > 0 ? factor : 2 - factor), most_capital);
      against_[i] = std::min(against_[i] * (x > 0 ? 2 - factor : factor), most_capital);
    }
  }
  double positive() const { return std::accumulate(for_.begin(), for_.end(), 0.0); }
  double negative() const { return std::accumulate(against_.begin(), against_.end(), 0.0); }
  double evidence() const { return (positive() + negative()) / 2; }

 private:
  static constexpr double most_capital = 1e300;  ///< after a thousand pairs of one sign: it stays a number
  double length_ = 0, finite_ = 0;
  std::array<double, capital_shares.size()> for_ = capital_shares, against_ = capital_shares;
};

double evidence_against(double mu, std::span<double const> differences) {
  Betting betting;
  for (double const value : differences) betting.add(value - mu);
  return betting.evidence();
}

/// Where evidence falls below a bound, between a point outside and one inside.
double edge(double outside, double inside, auto const& holds) {
  for (int i = 0; i < 200; ++i) {
    double const middle = (outside + inside) / 2;
    (holds(middle) ? inside : outside) = middle;
  }
  return inside;
}

}  // namespace

std::vector<double> evidence(std::span<double const> differences) {
  Betting betting;
  std::vector<double> all;
  for (double const value : differences) {
    betting.add(value);
    all.push_back(betting.evidence());
  }
  return all;
}

Interval confidence_sequence(std::span<double const> differences, double significance) {
  Interval const unbounded{-infinity, infinity};
  std::vector<double> points;
  std::ranges::copy_if(differences, std::back_inserter(points), [](double value) { return std::isfinite(value); });
  if (points.empty()) return unbounded;
  auto const [low, high] = std::ranges::minmax(points);
  double const spread = high > low ? high - low : low != 0 ? std::abs(low) : 1e-12, far = 1e6 * spread;
  auto const holds = [&](double mu) { return evidence_against(mu, differences) < 1 / significance; };
  if (holds(low - far)) return unbounded;
  for (double const share : {0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1e4}) {
    points.push_back(low - spread * share);
    points.push_back(high + spread * share);
  }
  for (int j = 0; j <= 2000; ++j) points.push_back(low + spread * j / 2000);
  std::ranges::sort(points);
  auto const first = std::ranges::find_if(points, holds);
  if (first == points.end()) return {std::nan(""), std::nan("")};
  auto last = points.end() - 1;
  while (!holds(*last)) --last;
  return {edge(first == points.begin() ? low - far : *(first - 1), *first, holds),
          edge(last + 1 == points.end() ? high + far : *(last + 1), *last, holds)};
}

bool lies_between(double low, double high, std::span<double const> differences, double significance) {
  for (double const end : {low, high})  // they are tried first, which tells most of the time and costs little
    if (std::isfinite(end) && evidence_against(end, differences) < 1 / significance) return false;
  if (std::ranges::all_of(differences, [&](double each) { return std::isinf(each) && (each == low || each == high); })) return true;
  auto const interval = confidence_sequence(differences, significance);
  return low < interval.low && interval.high < high;
}

Verdict verdict_by_evidence(std::span<double const> differences, Question const& question, std::size_t arms) {
  constexpr std::size_t enough_identical = 6;
  double const significance = question.significance() / static_cast<double>(arms);
  Betting betting;
  for (std::size_t k = 1; k <= differences.size(); ++k) {
    auto const first = differences.first(k);
    betting.add(first.back());
    if (question.margin > 0 && lies_between(-question.margin, question.margin, first, significance)) return Verdict::equivalent;
    if (k >= enough_identical && std::ranges::all_of(first, [](double value) { return value == 0; })) return Verdict::identical;
    if (betting.evidence() < 1 / significance) continue;
    bool const lower = betting.negative() > betting.positive();
    return lower == (question.better == Better::lower) ? Verdict::better : Verdict::worse;
  }
  return Verdict::unclear;
}

Comparison compare_by_evidence(std::span<double const> differences, Question const& question, std::size_t arms) {
  Comparison result = describe(differences);
  result.arms = arms;
  if (differences.empty()) return result;
  auto const e = evidence(differences);
  result.e = e.back();
  result.p_alone = std::min(1.0, 1 / *std::ranges::max_element(e));
  result.p = std::min(1.0, static_cast<double>(arms) * result.p_alone);
  auto const interval = confidence_sequence(differences, question.significance() / static_cast<double>(arms));
  if (std::isfinite(result.mean) && std::isfinite(interval.low) && std::isfinite(interval.high)) result.interval = interval;
  result.verdict = verdict_by_evidence(differences, question, arms);
  result.direction = result.mean < 0 ? -1 : result.mean > 0 ? 1 : 0;
  if (result.verdict == Verdict::better || result.verdict == Verdict::worse)
    result.direction = (result.verdict == Verdict::better) == (question.better == Better::lower) ? -1 : 1;
  return result;
}

std::size_t seeds_for_verdict(bool by_evidence, std::size_t arms, double significance) {
  auto const e = evidence(std::vector<double>(100, 1.0));
  auto const too_few = [&](std::size_t k) {
    return by_evidence ? e[k - 1] < static_cast<double>(arms) / significance : smallest_p(k) > significance;
  };
  std::size_t seeds = 1;
  while (seeds < e.size() && too_few(seeds)) ++seeds;
  return seeds;
}

std::optional<std::size_t> pairs_that_tell(std::span<double const> differences, double threshold) {
  constexpr std::size_t continuations = 200, most = 1000;
  if (differences.size() < 3) return std::nullopt;
  Stream const stream(0, "pairs that tell");
  std::vector<std::size_t> needed(continuations);
  for (std::size_t i = 0; i < continuations; ++i) {
    auto const draws = stream.child(i);
    Betting betting;
    for (auto& pairs = needed[i]; pairs < differences.size() || (pairs <= most && betting.evidence() < threshold); ++pairs)
      betting.add(differences[pairs < differences.size() ? pairs : draws.below(pairs, differences.size())]);
  }
  std::ranges::nth_element(needed, needed.begin() + continuations / 2);
  auto const middle = needed[continuations / 2];
  return middle > most ? std::nullopt : std::optional(middle);
}

std::optional<double> difference_told(std::size_t pairs, double significance, double power) {
  if (smallest_p(pairs) > significance) return std::nullopt;
  Stream const stream(0, "difference told");
  double const told = effect_found(1000, power, [&](std::size_t i) {
    std::vector<double> noise(pairs);
    stream.normals(i * pairs, noise);
    return [=](double difference) {
      Betting betting;
      return std::ranges::any_of(noise, [&](double value) {
        betting.add(value + difference);
        return betting.evidence() >= 1 / significance;
      });
    };
  });
  return told >= 63 ? std::nullopt : std::optional(told);
}

std::vector<bool> standing(std::span<double const> evidence, double significance) {
  std::vector<double> falling(evidence.begin(), evidence.end());
  std::ranges::sort(falling, std::greater());
  auto const count = static_cast<double>(falling.size());
  double bound = infinity;
  for (std::size_t k = 1; k <= falling.size(); ++k)
    if (double const needed = count / (significance * static_cast<double>(k)); falling[k - 1] >= needed) bound = needed;
  return mapped(evidence, [&](double e) { return e >= bound; });
}

}  // namespace heed
