#include "experiments/report/curve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

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
    CurvePoint point{.x = bin.steps / static_cast<double>(bin.count)};
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

std::vector<double> spread(std::vector<double> heights, double gap) {
  std::vector<std::size_t> order(heights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return heights[i]; });
  gap = std::min(gap, heights.size() > 1 ? 1 / static_cast<double>(heights.size() - 1) : 1);
  // Groups that touch share their displacement: pool neighbours until none overlap.
  struct Group {
    double centre = 0;
    std::size_t size = 0;
  };
  std::vector<Group> groups;
  for (std::size_t const i : order) {
    groups.push_back({heights[i], 1});
    auto const half = [&](Group const& group) { return gap * static_cast<double>(group.size) / 2; };
    auto const inside = [&](Group& group) { group.centre = std::clamp(group.centre, half(group) - gap / 2, 1 - half(group) + gap / 2); };
    inside(groups.back());
    while (groups.size() > 1 &&
           groups.back().centre - half(groups.back()) < groups[groups.size() - 2].centre + half(groups[groups.size() - 2])) {
      Group const above = groups.back();
      groups.pop_back();
      auto& group = groups.back();
      auto const size = static_cast<double>(group.size), more = static_cast<double>(above.size);
      group = {(group.centre * size + above.centre * more) / (size + more), group.size + above.size};
      inside(group);
    }
  }
  std::size_t next = 0;
  for (auto const& group : groups) {
    for (std::size_t k = 0; k < group.size; ++k)
      heights[order[next++]] = group.centre + gap * (static_cast<double>(k) - static_cast<double>(group.size - 1) / 2);
  }
  return heights;
}

}  // namespace heed
