#include "experiments/study/quadrature.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace heed {

namespace {

// e^{−e^x} is 1 below the first and 0 above the second, as far as a double tells.
constexpr double lowest = -34, highest = 4;
constexpr double reach = 9;  // standard deviations
constexpr double du = 0.2;

double density(double t) { return std::exp(-t * t / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2; }
double cumulative(double t) { return std::erfc(-t / std::numbers::sqrt2) / 2; }

/// Equidistant points over ±reach·σ (and a few more), with N(z; 0, σ²) dz.
struct Points {
  Points(double deviation, double spacing, int margin) : dz(spacing) {
    auto const half = static_cast<std::int64_t>(std::ceil(reach * deviation / dz)) + margin;
    for (std::int64_t k = -half; k <= half; ++k) {
      z.push_back(static_cast<double>(k) * dz);
      weight.push_back(density(z.back() / deviation) / deviation * dz);
    }
  }
  /// The first point with z ≥ x.
  std::size_t from(double x) const { return static_cast<std::size_t>(std::lower_bound(z.begin(), z.end(), x) - z.begin()); }

  double dz;
  std::vector<double> z, weight;
};

/// G_m,r(u) = ∫ N(z) z^r e^{m(z+u)} e^{−e^{z+u}} dz at one u.
struct Transforms {
  double g0 = 0, g2 = 0, g3 = 0, g4 = 0, z11 = 0, z21 = 0, z31 = 0, z22 = 0, z32 = 0, z42 = 0;

  Transforms(Points const& points, std::vector<double> const& below, double u) {
    std::size_t const begin = points.from(lowest - u), end = points.from(highest - u);
    g0 = below[begin];
    for (std::size_t k = begin; k < end; ++k) {
      double const z = points.z[k], e = std::exp(z + u), e2 = e * e;
      double const w = points.weight[k] * std::exp(-e);
      g0 += w;
      g2 += w * e2;
      g3 += w * e2 * e;
      g4 += w * e2 * e2;
      z11 += w * e * z;
      z21 += w * e2 * z;
      z31 += w * e2 * e * z;
      z22 += w * e2 * z * z;
      z32 += w * e2 * e * z * z;
      z42 += w * e2 * e2 * z * z;
    }
  }
};

/// All but the largest weight.
void add_moments(double deviation, std::vector<std::int64_t> const& keys, std::vector<SoftmaxExpectations>& result) {
  Points const points(deviation, std::min(0.2, 0.5 * deviation), 0);
  std::vector<double> below{0};
  for (double const weight : points.weight) below.push_back(below.back() + weight);
  double const first = -points.z.back() + lowest, last = points.z.back() + highest;
  for (double u = first; u <= last; u += du) {
    Transforms const g(points, below, u);
    double const everywhere = std::exp(-std::exp(u));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      auto const n = static_cast<double>(keys[i]);
      double const three = keys[i] > 2 ? std::pow(g.g0, n - 3) : 0, two = keys[i] > 2 ? three * g.g0 : 1, one = two * g.g0;
      auto& e = result[i];
      e.trace -= du * n * g.g2 * one;
      e.frobenius_squared += du * n * ((g.g2 - g.g3 + g.g4 / 6) * one + (n - 1) / 6 * g.g2 * g.g2 * two);
      e.entropy += du * (everywhere - one * g.g0);  // E log Σ e^z so far
      double const square = g.z22 * one, product = (g.z32 * one + (n - 1) * g.z21 * g.z11 * two) / 2;
      double const squared_mean =
          (g.z42 * one + (n - 1) * ((2 * g.z31 * g.z11 + g.g2 * g.z22) * two + (n - 2) * g.g2 * g.z11 * g.z11 * three)) / 6;
      e.along_logits += du * n * (square - 2 * product + squared_mean);
    }
  }
  for (auto& e : result) {
    e.trace += 1;
    e.entropy -= deviation * deviation * e.trace;
  }
}

/// The largest weight. The inner integral needs finer steps than the others, because it ends where its integrand is not small: a polynomial
/// through eight points each step.
void add_max_weight(double deviation, std::vector<std::int64_t> const& keys, std::vector<SoftmaxExpectations>& result) {
  constexpr std::array rule{-191.0, 1879.0, -9531.0, 68323.0, 68323.0, -9531.0, 1879.0, -191.0};  // over 120960, for the middle interval
  constexpr std::size_t margin = 4, stride = 2;  // the outer integral takes every second point
  Points const points(deviation, std::min(0.05, 0.07 * deviation), margin);
  std::size_t const most = points.z.size() - margin;
  std::vector<double> integrand(points.z.size());
  for (double u = -points.z.back() + lowest; u <= points.z.back() + highest; u += du) {
    std::size_t const begin = std::max(points.from(lowest - u), margin), end = std::min(points.from(highest - u), most);
    for (std::size_t k = begin - margin; k < std::min(end + margin, points.z.size()); ++k)
      integrand[k] = points.weight[k] * std::exp(-std::exp(points.z[k] + u));
    double below = cumulative(points.z[begin] / deviation);
    for (std::size_t k = begin; k < end; ++k) {
      if (k % stride == 0 && below > 0) {
        double const here = du * stride * integrand[k] * std::exp(points.z[k] + u), log_below = std::log(below);
        for (std::size_t i = 0; i < keys.size() && here > 1e-20; ++i) {
          auto const n = static_cast<double>(keys[i]);
          result[i].max_weight += n * here * std::exp((n - 1) * log_below);
        }
      }
      double step = 0;
      for (std::size_t j = 0; j < rule.size(); ++j) step += rule[j] * integrand[k + j - 3];
      below += step / 120960;
    }
  }
}

void add(SoftmaxExpectations& to, SoftmaxExpectations const& e, double weight) {
  to.trace += weight * e.trace;
  to.frobenius_squared += weight * e.frobenius_squared;
  to.entropy += weight * e.entropy;
  to.max_weight += weight * e.max_weight;
  to.along_logits += weight * e.along_logits;
}

}  // namespace

std::vector<SoftmaxExpectations> softmax_of_normal_logits(double variance, std::vector<std::int64_t> const& keys) {
  std::vector<SoftmaxExpectations> result(keys.size());
  add_moments(std::sqrt(variance), keys, result);
  add_max_weight(std::sqrt(variance), keys, result);
  return result;
}

std::vector<DotProductExpectations> softmax_of_gaussian_products(std::int64_t width, double scale, std::vector<std::int64_t> const& keys) {
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
  for (double const direction : {-spacing, spacing}) {
    for (double x = peak + direction; weight(x) > 1e-14; x += direction) add_node(x);
  }
  for (auto& e : result) {
    e.softmax = [&, sum = e.softmax] {
      SoftmaxExpectations mean;
      add(mean, sum, 1 / total);
      return mean;
    }();
    e.query_gradient_squared /= total;
    e.key_gradient_squared /= total;
  }
  return result;
}

double expected_maximum(std::int64_t keys) {
  // n (n − 1) ∫ φ² Φ^{n−2}, by trapezoids
  auto const n = static_cast<double>(keys);
  constexpr double step = 0.05;
  double sum = 0;
  for (double t = -reach; t <= reach; t += step) sum += density(t) * density(t) * std::pow(cumulative(t), n - 2);
  return n * (n - 1) * sum * step;
}

}  // namespace heed
