// How a head attends: means over the rows of the probes' batch that see a key.

#include <algorithm>
#include <cmath>

#include "experiments/probe/heads.hpp"

namespace heed {

namespace {

using OfRow = std::optional<double> (*)(AttentionRow const&);

Probe of_rows(std::string const& name, std::string const& unit, std::string formula, std::string help, OfRow f) {
  return {"attention",
          name,
          std::move(formula),
          std::move(help),
          {"attention." + name + ".layer*.head*", unit, {}, ""},
          Probe::Sees::attention,
          [name, f](Probed const& probed, Row& row) { record_rows(probed.sight, "attention." + name, f, false, row); }};
}

double mean_score(AttentionRow const& row) {
  double sum = 0;
  for (double const e : row.scores) sum += e;
  return sum / static_cast<double>(row.scores.size());
}

DeclaredProbe const entropy{of_rows("entropy", "nat", "−Σ_j p_j log p_j", "of p_j = a_j / Σ_j a_j: log n where weights are even",
                                    [](AttentionRow const& row) -> std::optional<double> {
                                      double sum = 0;
                                      for (double const p : row.shares) sum -= p > 0 ? p * std::log(p) : 0;
                                      return sum;
                                    })};

DeclaredProbe const max_weight{of_rows("max_weight", "", "max_j a_j", "the largest weight",
                                       [](AttentionRow const& row) -> std::optional<double> { return std::ranges::max(row.weights); })};

DeclaredProbe const distance{
    of_rows("distance", "tokens", "Σ_j p_j |i − j|", "how far away it looks", [](AttentionRow const& row) -> std::optional<double> {
      double sum = 0;
      for (std::size_t j = 0; j < row.shares.size(); ++j)
        sum += row.shares[j] * std::abs(static_cast<double>(row.position) - static_cast<double>(j));
      return sum;
    })};

DeclaredProbe const first_token{of_rows("first_token", "", "p_0", "share of the weight on the first token",
                                        [](AttentionRow const& row) -> std::optional<double> { return row.shares.front(); })};

DeclaredProbe const score_mean{of_rows("score_mean", "", "ē = Σ_j e_j / n", "of the scores of the n visible keys",
                                       [](AttentionRow const& row) -> std::optional<double> { return mean_score(row); })};

DeclaredProbe const score_variance{of_rows("score_variance", "", "Σ_j (e_j − ē)² / (n − 1)", "of the scores within rows that see two keys",
                                           [](AttentionRow const& row) -> std::optional<double> {
                                             if (row.scores.size() < 2) return std::nullopt;
                                             double const mean = mean_score(row);
                                             double sum = 0;
                                             for (double const e : row.scores) sum += (e - mean) * (e - mean);
                                             return sum / static_cast<double>(row.scores.size() - 1);
                                           })};

}  // namespace

}  // namespace heed
