#include "experiments/study/softmax_rows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "experiments/metric/statistics.hpp"

namespace heed {

namespace {

/// Scale-invariant attention (2505.17083): a_t s + m_t at distance t, a_t = √(2 [log(t/τ + 1) − log α + β/α]), m_t = −a_t² + β/α, α = β =
/// e^½, τ = 10.
void make_scale_invariant(std::span<double> scores) {
  for (std::size_t t = 0; t < scores.size(); ++t) {
    double const squared = 2 * (std::log(static_cast<double>(t) / 10 + 1) - 0.5 + 1);
    scores[t] = std::sqrt(squared) * scores[t] - squared + 1;
  }
}

/// A row's weights p, and shares s with J = diag(s) − c s sᵀ.
struct RowWeights {
  std::vector<double> weights, shares;
  double c = 1;
};

/// 1.5-entmax of scores in falling order: max(e/2 − τ, 0)², whose shares are the weights' roots.
RowWeights entmax_weights(std::vector<double> const& scores) {
  double sum = 0, squares = 0, tau = 0;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    double const z = (scores[k] - scores.front()) / 2, n = static_cast<double>(k + 1);
    sum += z, squares += z * z;
    double const rest = (1 - (squares - sum * sum / n)) / n;
    if (rest < 0 || sum / n - std::sqrt(rest) > z) break;
    tau = sum / n - std::sqrt(rest);
  }
  RowWeights row;
  double total = 0;
  for (double const score : scores) {
    double const root = std::max(0.0, (score - scores.front()) / 2 - tau);
    row.weights.push_back(root * root), row.shares.push_back(root), total += root;
  }
  row.c = 1 / total;
  return row;
}

/// Of scores in falling order.
RowWeights weights_of(std::string const& variant, std::vector<double> const& scores) {
  if (variant == "entmax15") return entmax_weights(scores);
  RowWeights row;
  if (variant == "sigmoid") {
    for (double const score : scores) {
      row.weights.push_back(1 / (1 + static_cast<double>(scores.size()) * std::exp(-score)));
      row.shares.push_back(row.weights.back() * (1 - row.weights.back()));
    }
    row.c = 0;
    return row;
  }
  double const top = variant == "softmax1" ? std::max(scores.front(), 0.0) : scores.front();
  for (double const score : scores) row.weights.push_back(std::exp(score - top));
  double const total = std::accumulate(row.weights.rbegin(), row.weights.rend(), variant == "softmax1" ? std::exp(-top) : 0.0);
  for (double& weight : row.weights) weight /= total;
  row.shares = row.weights;
  return row;
}

}  // namespace

double factor_of(std::string const& variant, double n, double trained) {
  if (variant == "log_length") return std::log(n) / std::log(trained);
  return variant == "yarn" ? std::pow(1 + 0.1 * std::log(n / trained), 2) : 1;
}

std::array<double, length_quantities.size()> measured_row(std::string const& variant, std::vector<double> scores) {
  if (variant == "scale_invariant") make_scale_invariant(scores);
  std::ranges::sort(scores, std::greater());
  auto const [weights, shares, c] = weights_of(variant, scores);
  double sum = 0, squares = 0, cubes = 0, entropy = 0;
  for (double const s : shares) sum += s, squares += s * s, cubes += s * s * s;
  for (double const p : weights) entropy -= p > 0 ? p * std::log(p) : 0;
  return {sum - c * squares, squares - 2 * c * cubes + c * c * squares * squares, entropy, weights.front(), gap_function(scores)};
}

}  // namespace heed
