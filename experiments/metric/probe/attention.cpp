// Statistics of attention per head: means over the rows of the probes' batch with a visible key.

#include <cmath>

#include "experiments/metric/probe/heads.hpp"

namespace heed {

namespace {

Probe of_number(std::string const& name, std::string const& unit, std::string formula, std::string help, RowStatistic which,
                Bounds bounds = {}) {
  return {"attention",
          name,
          std::move(formula),
          std::move(help),
          {"attention." + name + ".layer*.head*", unit, {}, "", bounds},
          Probe::Input::attention,
          [name, which](Probed const& probed, Row& row) {
            auto const of_row = [which](AttentionRow const& r) { return std::isnan(r[which]) ? std::nullopt : std::optional(r[which]); };
            record_rows(probed.attention, "attention." + name, of_row, false, row);
          }};
}

Declared<Probe> const entropy_probe{of_number("entropy", "nat", "−Σ_j p_j log p_j",
                                              "entropy of the weights p_j = a_j / Σ_j a_j; log n if they are uniform",
                                              RowStatistic::entropy, {.min = 0})};
Declared<Probe> const max_weight_probe{
    of_number("max_weight", "", "max_j a_j", "the largest weight", RowStatistic::largest_weight, fraction)};
Declared<Probe> const distance_probe{
    of_number("distance", "tokens", "Σ_j p_j |i − j|", "mean distance of the attended keys", RowStatistic::distance)};
Declared<Probe> const first_token_probe{
    of_number("first_token", "", "p_0", "share of the weight on the first token", RowStatistic::first, fraction)};
Declared<Probe> const score_mean_probe{
    of_number("score_mean", "", "ē = Σ_j e_j / n", "mean of the scores of the n visible keys", RowStatistic::score_mean)};
Declared<Probe> const score_variance_probe{of_number("score_variance", "", "Σ_j (e_j − ē)² / (n − 1)",
                                                     "variance of the scores of a query with at least two visible keys",
                                                     RowStatistic::score_variance)};
Declared<Probe> const max_score_probe{
    of_number("max_score", "", "max_j e_j", "the largest score (attention logit)", RowStatistic::largest_score)};

}  // namespace

}  // namespace heed
