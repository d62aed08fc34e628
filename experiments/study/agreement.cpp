#include "experiments/study/agreement.hpp"

#include <cmath>
#include <map>
#include <tuple>

#include <boost/math/distributions/chi_squared.hpp>

namespace heed {

std::vector<ZScore> scores_of(std::vector<ScalingCell> const& cells) {
  std::vector<ZScore> scores;
  for (auto const& cell : cells) {
    for (std::size_t q = 0; q < quantities; ++q) {
      auto const& value = cell.values[q];
      if (!value || !value->theory || value->standard_error <= 1e-7 * std::abs(value->mean)) continue;
      scores.push_back({&cell, static_cast<Quantity>(q), (value->mean - *value->theory) / value->standard_error});
    }
  }
  return scores;
}

ScoreAgreement agreement_of(std::vector<ZScore> const& scores) {
  std::map<std::tuple<std::string, Index, Index>, std::pair<double, double>> draws;  // Σ z² and how many
  ScoreAgreement agreement{.farthest = scores.front()};
  for (auto const& score : scores) {
    auto& [squares, count] = draws[{score.cell->distribution, score.cell->d_k, score.cell->keys}];
    squares += score.z * score.z;
    count += 1;
    if (std::abs(score.z) > std::abs(agreement.farthest.z)) agreement.farthest = score;
  }
  auto const n = static_cast<double>(draws.size());
  for (auto const& [draw, sum] : draws) agreement.mean_square += sum.first / sum.second / n;
  boost::math::chi_squared const law(n);
  agreement.draws = draws.size();
  agreement.expected = {quantile(law, 0.025) / n, quantile(law, 0.975) / n};
  return agreement;
}

}  // namespace heed
