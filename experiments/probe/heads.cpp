#include "experiments/probe/heads.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace heed {

namespace {

/// f of the rows of one head, in all sequences.
std::vector<double> values(Sight::Layer const& layer, std::int64_t head, std::span<double const> scores, std::span<double const> weights,
                           std::function<std::optional<double>(AttentionRow const&)> const& f) {
  std::int64_t const heads = layer.weights.size(1), queries = layer.weights.size(2), keys = layer.weights.size(3);
  std::vector<double> found, shares;
  for (std::int64_t b = 0; b < layer.weights.size(0); ++b) {
    for (std::int64_t i = 0; i < queries; ++i) {
      auto const seen = static_cast<std::size_t>(layer.visibility.count(b, i, keys));
      auto const start = static_cast<std::size_t>(((b * heads + head) * queries + i) * keys);
      auto const a = weights.subspan(start, seen);
      double const total = std::accumulate(a.begin(), a.end(), 0.0);
      if (total == 0) continue;
      shares.assign(a.begin(), a.end());
      for (double& share : shares) share /= total;
      if (auto const value = f({layer.visibility.offset + i, scores.subspan(start, seen), a, shares})) found.push_back(*value);
    }
  }
  return found;
}

double mean(std::vector<double> const& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Of an even number: the mean of the two in the middle.
double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  auto const half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

void record_rows(Sight const& sight, std::string const& name, std::function<std::optional<double>(AttentionRow const&)> const& f,
                 bool median, Row& row) {
  for (std::size_t l = 0; l < sight.attention.size(); ++l) {
    auto const& layer = sight.attention[l];
    Tensor const scores = layer.scores.detach().to(DType::float64), weights = layer.weights.detach().to(DType::float64);
    for (std::int64_t head = 0; head < weights.size(1); ++head) {
      auto const found = values(layer, head, scores.data<double>(), weights.data<double>(), f);
      if (found.empty()) continue;
      std::string const key = fmt::format("probe.{}.layer{}.head{}", name, l, head);
      row.set(key, mean(found));
      if (median) row.set(key + ".median", median_of(found));
    }
  }
}

}  // namespace heed
