#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include <boost/math/distributions/students_t.hpp>

#include "autograd/random.hpp"
#include "experiments/metric/statistics.hpp"

namespace heed {

namespace {

constexpr std::size_t max_seeds = 12;  // above these the test's power changes with the number of seeds as a t test's

/// The effect that a t test of so many seeds finds, about.
double t_effect(std::size_t seeds, double significance, double power) {
  boost::math::students_t const t(static_cast<double>(seeds) - 1);
  return (quantile(t, 1 - significance / 2) + quantile(t, power)) / std::sqrt(static_cast<double>(seeds));
}

using Flipped = std::vector<double>;  // an arm's statistic under each flip; the first is the observed one

/// |Σ_s ±d_s| / √(Σ_s d_s²) for every flip, in the order of a Gray code: one sign changes at a time.
void flip_all(std::span<double const> differences, Flipped& statistic) {
  double sum = std::accumulate(differences.begin(), differences.end(), 0.0);
  double const length = std::sqrt(std::inner_product(differences.begin(), differences.end(), differences.begin(), 0.0));
  std::size_t signs = 0;
  for (std::size_t flip = 0; flip < statistic.size(); ++flip) {
    statistic[flip] = std::abs(sum) / length;
    std::size_t const seed = static_cast<std::size_t>(std::countr_zero(flip + 1));
    if (seed + 1 >= differences.size()) break;
    sum += ((signs >> seed & 1) != 0 ? 2 : -2) * differences[seed];
    signs ^= std::size_t{1} << seed;
  }
}

/// Whether the joint sign-flip test finds an arm at the level that `allowed` flips are. `others`: under each flip the largest statistic of
/// the other arms. (Step-down would leave out those that are found themselves: they do not differ, so hardly ever.)
bool finds(Flipped const& arm, Flipped const& others, std::size_t allowed) {
  std::size_t reached = 0;
  for (std::size_t flip = 0; flip < arm.size(); ++flip) reached += std::max(arm[flip], others[flip]) >= arm.front() - 1e-12 ? 1 : 0;
  return reached <= allowed;
}

/// A comparison in which the first of `arms` has the effect, and the others do not differ from the baseline.
FindsEffect comparison(std::size_t seeds, std::size_t arms, std::size_t allowed, Stream const& stream) {
  std::vector<double> noise((arms + 1) * seeds), own(seeds);
  stream.normals(0, noise);
  Flipped first(std::size_t{1} << (seeds - 1)), other(first), others(first);
  for (std::size_t arm = 0; arm < arms; ++arm) {  // arm − baseline: correlated by 0.5, of deviation 1
    for (std::size_t s = 0; s < seeds; ++s) noise[arm * seeds + s] = (noise[arm * seeds + s] - noise[arms * seeds + s]) / std::sqrt(2.0);
    if (arm == 0) continue;
    flip_all(std::span(noise).subspan(arm * seeds, seeds), other);
    for (std::size_t flip = 0; flip < other.size(); ++flip) others[flip] = std::max(others[flip], other[flip]);
  }
  return [=](double effect) mutable {
    for (std::size_t s = 0; s < seeds; ++s) own[s] = noise[s] + effect;
    flip_all(own, first);
    return finds(first, others, allowed);
  };
}

}  // namespace

double effect_found(std::size_t simulations, double power, std::function<FindsEffect(std::size_t)> const& comparison) {
  std::vector<double> effects;
  for (std::size_t i = 0; i < simulations; ++i) {
    auto const finds = comparison(i);
    double low = 0, high = 64;
    while (high - low > 0.01) {
      double const middle = (low + high) / 2;
      (finds(middle) ? high : low) = middle;
    }
    effects.push_back(high);
  }
  auto const quantile = effects.begin() + static_cast<std::ptrdiff_t>(power * static_cast<double>(simulations));
  std::ranges::nth_element(effects, quantile);
  return *quantile;
}

std::optional<double> detectable_effect(std::size_t seeds, std::size_t arms, double significance, double power) {
  if (arms == 0 || smallest_p(seeds) > significance) return std::nullopt;
  double const alone = significance / static_cast<double>(arms);
  if (seeds > max_seeds)
    return *detectable_effect(max_seeds, arms, significance, power) * t_effect(seeds, alone, power) / t_effect(max_seeds, alone, power);
  thread_local std::map<std::tuple<std::size_t, std::size_t, double, double>, double> known;  // a page asks for each arm
  auto& effect = known[{seeds, arms, significance, power}];
  if (effect > 0) return effect;
  auto const allowed = static_cast<std::size_t>(std::ldexp(significance, static_cast<int>(seeds) - 1) * (1 + 1e-12));
  return effect = effect_found(2000, power, [&](std::size_t i) { return comparison(seeds, arms, allowed, Stream(0, "power").child(i)); });
}

std::size_t seeds_that_detect(double effect, std::size_t arms, double significance, double power) {
  if (!(effect > 0)) return 0;
  constexpr std::size_t many = 1000;  // from here on by √seeds
  for (std::size_t seeds = 2; seeds < many; ++seeds)
    if (auto const detectable = detectable_effect(seeds, arms, significance, power); detectable && *detectable <= effect) return seeds;
  double const root = *detectable_effect(many, arms, significance, power) / effect;
  return static_cast<std::size_t>(std::min(std::ceil(root * root * many), 1e9));
}

}  // namespace heed
