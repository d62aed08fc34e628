#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "experiments/ablation/results.hpp"
#include "experiments/config/scalar.hpp"

namespace heed {

namespace {

using Levels = std::vector<std::size_t>;

/// Values are summed as this power of two of themselves, so that no sum of finite ones is infinite, which rounds nothing.
constexpr int sum_exponent = -64;

/// A value of a factor beside the one that it is compared with.
struct LevelContrast {
  std::size_t factor, level, from;
};

class Effects {
 public:
  Effects(Grid const& grid, std::vector<BySeed> const& values, std::size_t baseline) : grid_(grid), values_(values) {
    reference_ = grid.levels_by_arm[baseline].empty() ? Levels(grid.factors.size(), 0) : grid.levels_by_arm[baseline];
  }

  std::vector<LevelContrast> steps(std::size_t factor) const {
    std::vector<LevelContrast> all;
    for (std::size_t level = 0; level < grid_.factors[factor].levels.size(); ++level)
      if (level != reference_[factor]) all.push_back({factor, level, reference_[factor]});
    return all;
  }

  /// By seed, the difference that a step makes, or the difference of differences of two; the mean over the combinations of the other
  /// factors of which all arms are there. NaN where infinite values leave it open.
  struct Sizes {
    BySeed by_seed;
    std::size_t averaged = 0, combinations = 0;
  };
  Sizes of(std::vector<LevelContrast> const& steps) const {
    Sizes sizes;
    for (auto const& rest : grid_.combinations_without(mapped(steps, &LevelContrast::factor))) {
      ++sizes.combinations;
      auto const here = contrast(steps, rest);
      if (!here) continue;
      sizes.by_seed = sizes.averaged == 0 ? *here : added(sizes.by_seed, *here);
      ++sizes.averaged;
    }
    for (auto& [seed, sum] : sizes.by_seed) sum = std::scalbn(sum / static_cast<double>(sizes.averaged), -sum_exponent);
    return sizes;
  }

 private:
  /// Σ ± y·2^sum_exponent over the 2^k cells that k steps span; nothing if an arm is missing.
  std::optional<BySeed> contrast(std::vector<LevelContrast> const& steps, Levels const& rest) const {
    std::optional<BySeed> sum;
    for (std::size_t cell = 0; cell < std::size_t{1} << steps.size(); ++cell) {
      Levels levels = rest;
      double sign = 1;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        bool const stepped = (cell >> i & 1) != 0;
        levels[steps[i].factor] = stepped ? steps[i].level : steps[i].from;
        sign *= stepped ? 1 : -1;
      }
      auto const arm = grid_.arm_at(levels);
      if (!arm || values_[*arm].empty()) return std::nullopt;
      BySeed signed_values = values_[*arm];
      for (auto& [seed, value] : signed_values) value = std::scalbn(sign * value, sum_exponent);
      sum = sum ? added(*sum, signed_values) : signed_values;
    }
    return sum;
  }

  /// The sum for every seed that both have.
  static BySeed added(BySeed const& a, BySeed const& b) {
    BySeed sum;
    for (auto const& [seed, value] : a)
      if (auto const other = b.find(seed); other != b.end()) sum[seed] = value + other->second;
    return sum;
  }

  Grid const& grid_;
  std::vector<BySeed> const& values_;
  Levels reference_;
};

std::string difference(Grid const& grid, LevelContrast const& step) {
  auto const& levels = grid.factors[step.factor].labels;
  return fmt::format("{} − {}", levels[step.level], levels[step.from]);
}

std::string name_of(Grid const& grid, std::vector<LevelContrast> const& steps) {
  if (steps.size() == 1) return fmt::format("{}: {}", grid.name(steps[0].factor), difference(grid, steps[0]));
  return fmt::format("{} × {}: ({}) × ({})", grid.name(steps[0].factor), grid.name(steps[1].factor), difference(grid, steps[0]),
                     difference(grid, steps[1]));
}

std::string in_words(Grid const& grid, std::vector<LevelContrast> const& steps, Effect const& effect, std::string const& unit,
                     Question const& question) {
  auto const& c = effect.comparison;
  if (c.p > question.significance() || (effect.interaction && !std::isfinite(c.mean))) return "";
  auto const label = [&](LevelContrast const& step, std::size_t level) {
    return fmt::format("{} {}", grid.name(step.factor), grid.factors[step.factor].labels[level]);
  };
  auto const over = effect.averaged == effect.combinations
                        ? "over all else, "
                        : fmt::format("over {} of {} combinations of all else, ", effect.averaged, effect.combinations);
  auto const& first = steps[0];
  if (steps.size() == 1)
    return over + sentence(label(first, first.level), grid.factors[first.factor].labels[first.from], unit, c, question);
  auto const& second = steps[1];
  return fmt::format("{} instead of {} changes it by {:+.3g}{} more with {} than with {} (p = {:.2g}, {} seeds)", label(first, first.level),
                     grid.factors[first.factor].labels[first.from], c.mean, unit.empty() ? "" : " " + unit, label(second, second.level),
                     grid.factors[second.factor].labels[second.from], c.p, c.seeds);
}

/// The arms that differ in one key alone: its value and theirs.
using ArmsOfKey = std::vector<std::pair<double, BySeed const*>>;

/// The metric of every seed that has all of these arms, in their order.
std::map<Index, std::vector<double>> whole_seeds(ArmsOfKey const& arms) {
  std::map<Index, std::vector<double>> seeds;
  for (auto const& [seed, first] : *arms.front().second) {
    std::vector<double> values;
    for (auto const& [number, of_arm] : arms)
      if (auto const found = of_arm->find(seed); found != of_arm->end() && std::isfinite(found->second)) values.push_back(found->second);
    if (values.size() == arms.size()) seeds.emplace(seed, std::move(values));
  }
  return seeds;
}

/// Whether a metric that rises on the whole (falls: with the other sign) also falls beyond chance, at the key's first values or its last.
bool turns(std::map<Index, std::vector<double>> const& seeds, double sign) {
  std::vector<double> sums(seeds.begin()->second.size());
  for (auto const& [seed, values] : seeds)
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += sign * values[i];
  auto const falls = [&](std::size_t from, std::size_t to) {
    auto const steps = mapped(seeds, [&](auto const& of_seed) { return sign * (of_seed.second[from] - of_seed.second[to]); });
    auto const test = sign_flip_test({steps});
    return test.alone[0] <= 0.05 && test.direction[0] > 0;
  };
  auto const lowest = static_cast<std::size_t>(std::ranges::min_element(sums) - sums.begin());
  auto const highest = static_cast<std::size_t>(std::ranges::max_element(sums) - sums.begin());
  return falls(0, lowest) || falls(highest, sums.size() - 1);
}

std::string in_words(Trend const& trend, bool turns_round, std::string const& metric) {
  auto const& [count, mean, deviation, interval, method] = trend.correlation;
  std::string const where = trend.elsewhere.empty() ? "" : fmt::format(" ({})", trend.elsewhere);
  std::string const number = fmt::format("Spearman's ρ {:.2f}{}, mean over {} seeds, p = {:.2g}", mean,
                                         interval ? fmt::format(" [{:.2f}, {:.2f}]", interval->low, interval->high) : "", count, trend.p);
  if (trend.p > 0.05) return fmt::format("{} neither rises nor falls clearly with {}{}: {}", metric, trend.key, where, number);
  if (turns_round) return fmt::format("{} changes with {}{}, but not in one direction: {}", metric, trend.key, where, number);
  return fmt::format("{} {} with {}{}: {}", metric, mean > 0 ? "rises" : "falls", trend.key, where, number);
}

}  // namespace

std::vector<Effect> effects_of(Grid const& grid, std::vector<BySeed> const& values, std::size_t baseline, std::string const& unit,
                               Question const& question) {
  Effects const effects(grid, values, baseline);
  std::vector<std::vector<LevelContrast>> asked;
  for (std::size_t f = 0; f < grid.factors.size(); ++f)
    for (auto const& step : effects.steps(f)) asked.push_back({step});
  for (std::size_t f = 0; f < grid.factors.size(); ++f)
    for (std::size_t g = f + 1; g < grid.factors.size(); ++g)
      for (auto const& first : effects.steps(f))
        for (auto const& second : effects.steps(g)) asked.push_back({first, second});

  std::vector<Effect> result;
  std::vector<std::vector<LevelContrast>> determined;
  std::vector<BySeed> sizes;
  BySeed nothing;
  for (auto const& steps : asked) {
    auto const [by_seed, averaged, combinations] = effects.of(steps);
    if (by_seed.empty()) continue;
    Effect effect{name_of(grid, steps), steps.size() > 1, {}, "", averaged, combinations};
    if (std::ranges::any_of(by_seed, [](auto const& each) { return std::isnan(each.second); })) {
      effect.comparison.seeds = by_seed.size();
      effect.comparison.mean = std::nan("");
    } else {
      determined.push_back(steps);
      sizes.push_back(by_seed);
      for (auto const& [seed, size] : by_seed) nothing[seed] = 0;
    }
    result.push_back(std::move(effect));
  }
  Question const plain{.better = question.better, .margin = 0, .confidence = question.confidence};
  auto const comparisons = compare(sizes, nothing, plain);
  std::size_t next = 0;
  for (auto& effect : result) {
    if (std::isnan(effect.comparison.mean)) continue;
    effect.comparison = comparisons[next];
    auto const& steps = determined[next++];
    // A difference of bounded values is at most as large as their range, a difference of differences twice that.
    double const most = static_cast<double>(steps.size()) * (question.bounds.max - question.bounds.min);
    if (auto& interval = effect.comparison.interval)
      interval = Interval{std::clamp(interval->low, -most, most), std::clamp(interval->high, -most, most)};
    effect.sentence = in_words(grid, steps, effect, unit, plain);
  }
  return result;
}

std::vector<Trend> trends_of(std::vector<KeyValues> const& keys, std::vector<BySeed> const& values, std::string const& metric) {
  std::map<std::pair<std::string, std::string>, ArmsOfKey> lines;  // by key, and what the others are
  for (std::size_t arm = 0; arm < keys.size(); ++arm)
    for (auto const& [key, value] : keys[arm]) {
      auto const number = parse_real(value);
      if (!number || !std::isfinite(*number) || values[arm].empty()) continue;
      std::string elsewhere;
      for (auto const& [other, of_other] : keys[arm])
        if (other != key) elsewhere += fmt::format("{}{} {}", elsewhere.empty() ? "" : ", ", last_word(other), label_of(of_other));
      lines[{key, elsewhere}].emplace_back(*number, &values[arm]);
    }
  std::vector<Trend> trends;
  std::vector<std::map<Index, std::vector<double>>> values_of;
  std::vector<BySeed> correlations;
  BySeed nothing;
  for (auto& [of, line] : lines) {
    std::ranges::stable_sort(line, {}, &ArmsOfKey::value_type::first);
    auto const numbers = mapped(line, &ArmsOfKey::value_type::first);
    std::set<double> const different(numbers.begin(), numbers.end());
    if (different.size() < 3) continue;
    auto const seeds = whole_seeds(line);
    BySeed by_seed;
    for (auto const& [seed, of_seed] : seeds)
      if (double const rho = spearman(numbers, of_seed); std::isfinite(rho)) by_seed[seed] = rho, nothing[seed] = 0;
    if (by_seed.size() < 2) continue;
    auto const all = mapped(by_seed, &BySeed::value_type::second);
    trends.push_back({of.first, of.second, different.size(), estimate(all, 0.95, {.min = -1, .max = 1}), 1, ""});
    values_of.push_back(seeds);
    correlations.push_back(std::move(by_seed));
  }
  auto const tests = compare(correlations, nothing, Question{});
  for (std::size_t i = 0; i < trends.size(); ++i) {
    trends[i].p = tests[i].p;
    bool const rises = trends[i].correlation.mean > 0;
    trends[i].sentence = in_words(trends[i], turns(values_of[i], rises ? 1 : -1), metric);
  }
  return trends;
}

}  // namespace heed
