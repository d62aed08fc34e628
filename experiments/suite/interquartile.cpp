#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/random.hpp"
#include "experiments/suite/suite.hpp"

namespace heed {

namespace {

std::optional<Interval> percentiles(std::vector<double> replicates) {
  if (!std::ranges::all_of(replicates, [](double value) { return std::isfinite(value); })) return std::nullopt;
  std::ranges::sort(replicates);
  return Interval{quantile_of(replicates, 0.025), quantile_of(replicates, 0.975)};
}

}  // namespace

double interquartile_mean(std::vector<double> scores) {
  std::ranges::sort(scores);
  auto const cut = static_cast<std::ptrdiff_t>(scores.size() / 4), left = std::ssize(scores) - 2 * cut;
  return std::accumulate(scores.begin() + cut, scores.end() - cut, 0.0) / static_cast<double>(left);
}

std::vector<SuiteEstimate> suite_estimates(std::vector<std::vector<double>> const& arms, std::size_t seeds, std::size_t baseline,
                                           std::size_t resamples) {
  std::vector<SuiteEstimate> estimates(arms.size());
  for (std::size_t arm = 0; arm < arms.size(); ++arm) estimates[arm].mean = interquartile_mean(arms[arm]);
  for (auto& each : estimates) each.difference = each.mean - estimates[baseline].mean;
  if (seeds < 2) return estimates;

  std::size_t const size = arms.front().size();
  Stream const stream(0, "suite");
  std::vector<std::size_t> chosen(size);
  std::vector<double> drawn(size);
  std::vector<std::vector<double>> replicates(arms.size(), std::vector<double>(resamples));
  for (std::size_t r = 0; r < resamples; ++r) {
    for (std::size_t i = 0; i < size; ++i) chosen[i] = i / seeds * seeds + stream.below(r * size + i, seeds);
    for (std::size_t arm = 0; arm < arms.size(); ++arm) {
      for (std::size_t i = 0; i < size; ++i) drawn[i] = arms[arm][chosen[i]];
      replicates[arm][r] = interquartile_mean(drawn);
    }
  }
  for (std::size_t arm = 0; arm < arms.size(); ++arm) {
    estimates[arm].interval = percentiles(replicates[arm]);
    if (arm == baseline) continue;
    auto differences = replicates[arm];
    for (std::size_t r = 0; r < resamples; ++r) differences[r] -= replicates[baseline][r];
    estimates[arm].difference_interval = percentiles(std::move(differences));
  }
  return estimates;
}

}  // namespace heed
