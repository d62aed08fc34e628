#include "experiments/report/curve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "experiments/metric/statistics.hpp"

namespace heed {

Curve curve_of(std::vector<std::vector<std::pair<Index, double>>> const& seeds, std::size_t most) {
  Index last = 0, common = std::numeric_limits<Index>::max();  // the last step of any seed, and of all
  std::size_t longest = 0;
  for (auto const& seed : seeds) {
    if (seed.empty()) continue;
    longest = std::max(longest, seed.size());
    last = std::max(last, seed.back().first);
    common = std::min(common, seed.back().first);
  }
  struct Bin {
    double steps = 0;
    Index count = 0;
    std::vector<double> means;
  };
  std::map<Index, Bin> bins;
  for (auto const& seed : seeds) {
    std::map<Index, std::pair<double, double>> sums;  // by bin: sum, count
    for (auto const& [step, value] : seed) {
      if (step > common) break;
      auto const bin = longest <= most ? step : step * static_cast<Index>(most) / (last + 1);
      auto& [sum, count] = sums[bin];
      sum += value;
      ++count;
      bins[bin].steps += static_cast<double>(step);
      ++bins[bin].count;
    }
    for (auto const& [bin, mean] : sums) bins[bin].means.push_back(mean.first / mean.second);
  }
  Curve curve;
  for (auto const& [index, bin] : bins) {
    Point point{.x = bin.steps / static_cast<double>(bin.count)};
    if (std::ranges::all_of(bin.means, [](double mean) { return std::isfinite(mean); })) {
      auto const found = estimate(bin.means);
      auto const interval = found.interval.value_or(Interval{found.mean, found.mean});
      point = {point.x, found.mean, interval.low, interval.high};
    } else {
      point.y = point.low = point.high = std::numeric_limits<double>::quiet_NaN();
    }
    curve.push_back(point);
  }
  return curve;
}

}  // namespace heed
