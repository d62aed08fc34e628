#include "experiments/ablation/scaling/quadrature.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace heed {

namespace {

// e^{−e^x} is 1 below the first and 0 above the second, as far as a double tells.
constexpr double lowest_score = -34, highest_score = 4;
constexpr double deviations = 9;  // standard deviations
constexpr double du = 0.2;

double density(double t) { return std::exp(-t * t / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2; }
double cumulative(double t) { return std::erfc(-t / std::numbers::sqrt2) / 2; }

/// Equidistant points over ±9 σ (and a few more), with N(z; 0, σ²) dz, and e^x and e^{−e^x} at the sums x of points z and u. The spacing of
/// u is a multiple of theirs, so that sums are few; where σ is so small that those of different u do not meet, they are computed for each.
struct Points {
  Points(double deviation, double spacing, int more)
      : ratio(static_cast<Index>(std::ceil(du / spacing - 1e-9))),
        dz(du / static_cast<double>(ratio)),
        half(static_cast<Index>(std::ceil(deviations * deviation / dz)) + more),
        lowest_sum(std::llround(lowest_score / dz)),
        highest_sum(std::llround(highest_score / dz)) {
    for (Index k = -half; k <= half; ++k) {
      z.push_back(static_cast<double>(k) * dz);
      weight.push_back(density(z.back() / deviation) / deviation * dz);
    }
    if (deviation < 0.02) return;
    shared = true;
    origin = lowest_sum - more;
    for (Index x = origin; x <= highest_sum + more; ++x) add_sum(static_cast<double>(x) * dz);
  }

  /// Makes `power` and `damping` those of u.
  void prepare(Index u) {
    if (shared) return;
    origin = u - half;
    power.clear();
    damping.clear();
    for (double const each : z) add_sum(static_cast<double>(u) * dz + each);
  }

  // u as multiples of dz: from first() to last() in steps of `ratio`.
  Index first() const { return lowest_sum - half; }
  Index last() const { return highest_sum + half; }
  /// The first point with z + u ≥ the lowest and the highest sum.
  Index begin(Index u) const { return std::clamp<Index>(lowest_sum - u + half, 0, 2 * half + 1); }
  Index end(Index u) const { return std::clamp<Index>(highest_sum - u + half, 0, 2 * half + 1); }
  /// Where z + u stands in `power` and `damping`, z being point k.
  std::size_t at(Index k, Index u) const { return static_cast<std::size_t>(k - half + u - origin); }

  Index ratio;
  double dz;
  Index half, lowest_sum, highest_sum;
  std::vector<double> z, weight, power, damping;

 private:
  void add_sum(double x) {
    power.push_back(std::exp(x));
    damping.push_back(std::exp(-power.back()));
  }

  bool shared = false;
  Index origin = 0;  ///< of the first sum
};

/// G_m,r(u) = ∫ N(z) z^r e^{m(z+u)} e^{−e^{z+u}} dz at one u, for m up to 4 and r up to 2.
using Transforms = std::array<std::array<double, 3>, 5>;

Transforms transforms_at(Index u, Points const& points, std::vector<double> const& below) {
  Transforms g{};
  g[0][0] = heed::at(below, points.begin(u));
  for (Index k = points.begin(u); k < points.end(u); ++k) {
    auto const at = points.at(k, u);
    double const z = heed::at(points.z, k), e = points.power[at], e2 = e * e, w = heed::at(points.weight, k) * points.damping[at];
    std::array const powers{w, w * e, w * e2, w * e2 * e, w * e2 * e2};
    for (std::size_t m = 0; m < powers.size(); ++m) {
      g[m][0] += powers[m];
      g[m][1] += powers[m] * z;
      g[m][2] += powers[m] * z * z;
    }
  }
  return g;
}

/// All but the largest weight.
void add_moments(double deviation, std::vector<Index> const& keys, std::vector<SoftmaxExpectations>& result) {
  Points points(deviation, std::min(0.2, 0.5 * deviation), 0);
  std::vector<double> below{0};
  for (double const weight : points.weight) below.push_back(below.back() + weight);
  for (Index u = points.first(); u <= points.last(); u += points.ratio) {
    points.prepare(u);
    auto const g = transforms_at(u, points, below);
    double const everywhere = std::exp(-std::exp(static_cast<double>(u) * points.dz));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      auto const n = static_cast<double>(keys[i]);
      double const three = keys[i] > 2 ? std::pow(g[0][0], n - 3) : 0, two = keys[i] > 2 ? three * g[0][0] : 1, one = two * g[0][0];
      auto& e = result[i];
      e.trace -= du * n * g[2][0] * one;
      e.frobenius_squared += du * n * ((g[2][0] - g[3][0] + g[4][0] / 6) * one + (n - 1) / 6 * g[2][0] * g[2][0] * two);
      e.entropy += du * (everywhere - one * g[0][0]);  // E log Σ e^z so far
      double const square = g[2][2] * one, product = (g[3][2] * one + (n - 1) * g[2][1] * g[1][1] * two) / 2;
      double const squared_mean =
          (g[4][2] * one + (n - 1) * ((2 * g[3][1] * g[1][1] + g[2][0] * g[2][2]) * two + (n - 2) * g[2][0] * g[1][1] * g[1][1] * three)) /
          6;
      e.along_logits += du * n * (square - 2 * product + squared_mean);
    }
  }
  for (auto& e : result) {
    e.trace += 1;
    e.entropy -= deviation * deviation * e.trace;
  }
}

/// The largest weight. The inner integral ends where its integrand is not small, and so is finer: a polynomial through eight points a step.
void add_max_weight(double deviation, std::vector<Index> const& keys, std::vector<SoftmaxExpectations>& result) {
  constexpr std::array rule{-191.0, 1879.0, -9531.0, 68323.0, 68323.0, -9531.0, 1879.0, -191.0};  // over 120960, for the middle interval
  constexpr Index margin = 4, stride = 2;  // the outer integral takes every second point
  Points points(deviation, std::min(0.05, 0.07 * deviation), margin);
  Index const size = 2 * points.half + 1;
  std::vector<double> integrand(points.z.size());
  for (Index u = points.first(); u <= points.last(); u += points.ratio) {
    points.prepare(u);
    Index const begin = std::max(points.begin(u), margin), end = std::min(points.end(u), size - margin);
    for (Index k = begin - margin; k < std::min(end + margin, size); ++k)
      heed::at(integrand, k) = heed::at(points.weight, k) * points.damping[points.at(k, u)];
    double below = cumulative(static_cast<double>(begin - points.half) * points.dz / deviation);
    for (Index k = begin; k < end; ++k) {
      auto const here = static_cast<std::size_t>(k);
      double const outer = du * stride * integrand[here] * points.power[points.at(k, u)];
      if (k % stride == 0 && below > 0 && outer > 1e-20) {
        double const log_below = std::log(below);
        for (std::size_t i = 0; i < keys.size(); ++i)
          result[i].max_weight += static_cast<double>(keys[i]) * outer * std::exp(static_cast<double>(keys[i] - 1) * log_below);
      }
      double step = 0;
      for (std::size_t j = 0; j < rule.size(); ++j) step += rule[j] * integrand[here + j - 3];
      below += step / 120960;
    }
  }
}

void add(SoftmaxExpectations& to, SoftmaxExpectations const& e, double weight) {
  using E = SoftmaxExpectations;
  for (auto const each : {&E::trace, &E::frobenius_squared, &E::entropy, &E::max_weight, &E::along_logits}) to.*each += weight * e.*each;
}

}  // namespace

std::vector<SoftmaxExpectations> softmax_of_normal_logits(double variance, std::vector<Index> const& keys) {
  std::vector<SoftmaxExpectations> result(keys.size());
  add_moments(std::sqrt(variance), keys, result);
  add_max_weight(std::sqrt(variance), keys, result);
  return result;
}

std::vector<DotProductExpectations> softmax_of_gaussian_products(Index width, double scale, std::vector<Index> const& keys) {
  auto const d = static_cast<double>(width);
  // x = ln |q| has the density ∝ e^{dx − e^{2x}/2}, largest at ln √d; trapezoids in x, away from there until nothing is left.
  double const peak = std::log(d) / 2, spacing = std::min(0.15, 0.35 / std::sqrt(d));
  auto const weight = [&](double x) { return std::exp(d * (x - peak) - (std::exp(2 * x) - d) / 2); };
  std::vector<DotProductExpectations> result(keys.size());
  double total = 0;
  auto const add_node = [&](double x) {
    double const w = weight(x), variance = scale * scale * std::exp(2 * x);
    auto const given = softmax_of_normal_logits(variance, keys);
    total += w;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      auto const& e = given[i];
      add(result[i].softmax, e, w);
      result[i].query_gradient_squared += w * scale * scale * ((d - 1) * e.frobenius_squared + e.along_logits / variance);
      result[i].key_gradient_squared += w * variance * e.frobenius_squared;
    }
  };
  add_node(peak);
  for (double const direction : {-spacing, spacing})
    for (double x = peak + direction; weight(x) > 1e-14; x += direction) add_node(x);
  for (auto& e : result) {
    auto const sum = std::exchange(e.softmax, {});
    add(e.softmax, sum, 1 / total);
    e.query_gradient_squared /= total;
    e.key_gradient_squared /= total;
  }
  return result;
}

double expected_maximum(Index keys) {
  // n (n − 1) ∫ φ² Φ^{n−2}, by trapezoids
  auto const n = static_cast<double>(keys);
  constexpr double step = 0.05;
  double sum = 0;
  for (double t = -deviations; t <= deviations; t += step) sum += density(t) * density(t) * std::pow(cumulative(t), n - 2);
  return n * (n - 1) * sum * step;
}

double gap_quantile(Index keys, double probability) {
  auto const n = static_cast<double>(keys);
  auto const beyond = [&](double g) {
    constexpr double step = 0.02;
    double sum = 0;
    for (double t = -deviations; t <= deviations; t += step) sum += density(t) * std::pow(cumulative(t - g), n - 1);
    return n * sum * step;
  };
  double low = 0, high = 2 * deviations;
  while (high - low > 1e-10) {
    double const middle = (low + high) / 2;
    (beyond(middle) > 1 - probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace heed
