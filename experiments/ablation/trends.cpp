#include "experiments/ablation/trends.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "experiments/config/scalar.hpp"
#include "experiments/config/table.hpp"

namespace heed {

namespace {

/// 1 for the smallest; of equal ones the mean.
std::vector<double> ranks(std::span<double const> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> result(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    for (std::size_t i = first; i <= last; ++i) result[order[i]] = static_cast<double>(first + last) / 2 + 1;
    first = last + 1;
  }
  return result;
}

/// The arms that differ in one key alone.
struct Arms {
  std::vector<double> places;  ///< of that key
  std::vector<BySeed const*> values;
};

/// A line's correlation in each seed that all of its arms have.
std::vector<double> by_seed(Arms const& line) {
  std::vector<double> correlations;
  for (auto const& [seed, first] : *line.values.front()) {
    std::vector<double> values;
    for (BySeed const* const arm : line.values)
      if (auto const found = arm->find(seed); found != arm->end() && std::isfinite(found->second)) values.push_back(found->second);
    if (values.size() != line.places.size()) continue;
    double const rho = spearman(line.places, values);
    if (std::isfinite(rho)) correlations.push_back(rho);
  }
  return correlations;
}

std::string in_words(Trend const& trend, std::string const& metric) {
  auto const& [count, mean, deviation, interval, method] = trend.correlation;
  bool const clear = interval ? interval->low > 0 || interval->high < 0 : mean != 0;
  std::string const where = trend.elsewhere.empty() ? "" : fmt::format(" ({})", trend.elsewhere);
  std::string const number = fmt::format("Spearman's ρ {:.2f}{}, mean over {} seeds", mean,
                                         interval ? fmt::format(" [{:.2f}, {:.2f}]", interval->low, interval->high) : "", count);
  if (!clear) return fmt::format("{} neither rises nor falls clearly with {}{}: {}", metric, trend.key, where, number);
  return fmt::format("{} {} with {}{}: {}", metric, mean > 0 ? "rises" : "falls", trend.key, where, number);
}

}  // namespace

double spearman(std::span<double const> x, std::span<double const> y) {
  auto const a = ranks(x), b = ranks(y);
  double const middle = static_cast<double>(x.size() + 1) / 2;
  double both = 0, of_a = 0, of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - middle) * (b[i] - middle);
    of_a += (a[i] - middle) * (a[i] - middle);
    of_b += (b[i] - middle) * (b[i] - middle);
  }
  return of_a > 0 && of_b > 0 ? both / std::sqrt(of_a * of_b) : std::nan("");
}

std::vector<Trend> trends_of(std::vector<Keys> const& keys, std::vector<BySeed> const& values, std::string const& metric) {
  std::map<std::pair<std::string, std::string>, Arms> lines;  // by key, and what the others are
  for (std::size_t arm = 0; arm < keys.size(); ++arm)
    for (auto const& [key, value] : keys[arm]) {
      auto const place = parse_real(value);
      if (!place || !std::isfinite(*place) || values[arm].empty()) continue;
      std::string elsewhere;
      for (auto const& [other, of_other] : keys[arm])
        if (other != key) elsewhere += fmt::format("{}{} {}", elsewhere.empty() ? "" : ", ", last_word(other), label_of(of_other));
      Arms& line = lines[{key, elsewhere}];
      line.places.push_back(*place);
      line.values.push_back(&values[arm]);
    }
  std::vector<Trend> trends;
  for (auto const& [of, line] : lines) {
    std::set<double> const different(line.places.begin(), line.places.end());
    auto const correlations = different.size() < 3 ? std::vector<double>() : by_seed(line);
    if (correlations.size() < 2) continue;
    Trend trend{of.first, of.second, different.size(), estimate(correlations, 0.95, {.least = -1, .greatest = 1}), ""};
    trend.sentence = in_words(trend, metric);
    trends.push_back(std::move(trend));
  }
  return trends;
}

}  // namespace heed
