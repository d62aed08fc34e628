#include "experiments/report/traces.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "experiments/config/table.hpp"
#include "experiments/metric/info.hpp"

namespace heed {

CurvePoint point_of(double x, Estimate const& found) {
  auto const interval = found.interval.value_or(Interval{found.mean, found.mean});
  return {x, found.mean, interval.low, interval.high};
}

Curve curve_of(std::vector<SeriesValues> const& seeds, std::size_t most) {
  Index last = 0, common = std::numeric_limits<Index>::max();  // the last step of any seed, and of all
  std::size_t longest = 0;
  for (auto const& seed : seeds) {
    if (seed.empty()) continue;
    longest = std::max(longest, seed.size());
    last = std::max(last, seed.back().first);
    common = std::min(common, seed.back().first);
  }
  auto const mean = [](std::vector<double> const& all) {
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  };
  struct Bin {
    std::vector<double> steps, means;  ///< of all seeds, of each
  };
  std::map<Index, Bin> bins;
  for (auto const& seed : seeds) {
    std::map<Index, std::vector<double>> own;
    for (auto const& [step, value] : seed) {
      if (step > common) break;
      auto const bin = longest <= most ? step : step * static_cast<Index>(most) / (last + 1);
      own[bin].push_back(value);
      bins[bin].steps.push_back(static_cast<double>(step));
    }
    for (auto const& [bin, values] : own) bins[bin].means.push_back(mean(values));
  }
  Curve curve;
  for (auto const& [index, bin] : bins) {
    bool const finite = std::ranges::all_of(bin.means, [](double value) { return std::isfinite(value); });
    double const x = mean(bin.steps);
    curve.push_back(finite ? point_of(x, estimate(bin.means)) : CurvePoint::bare(x, std::numeric_limits<double>::quiet_NaN()));
  }
  return curve;
}

Look style_of(Material const& material, std::size_t arm) {
  constexpr std::size_t colours = 6;
  auto const baseline =
      static_cast<std::size_t>(std::ranges::find(material.arms, material.baseline, &ArmResult::name) - material.arms.begin());
  if (arm == baseline || material.single) return {.colour = line_colour(0)};
  std::size_t const number = arm - (arm > baseline ? 1 : 0);
  return {.colour = line_colour(1 + number % colours), .dash = 2 + (number + number / colours) % 4};
}

std::string short_name(ArmResult const& arm) { return cut(arm.name, 32); }

std::string axis_name(Material const& material, std::string metric) {
  auto const* const info = find_metric(metric);
  std::string const unit = metric == material.metric ? material.unit : info != nullptr ? info->unit : "";
  if (metric == "loss" && !unit.empty()) metric = "training loss";  // another program's loss has no unit
  if (std::string_view constexpr probe = "probe."; metric.starts_with(probe)) metric.erase(0, probe.size());
  std::ranges::replace(metric, '.', ' ');
  std::ranges::replace(metric, '_', ' ');
  return unit.empty() ? metric : fmt::format("{} ({})", metric, unit);
}

Traces traces_of(Material const& material, std::string const& metric, bool against_baseline) {
  Traces traces;
  auto const* const baseline = material.baseline_arm();
  // An interval by Student's t may reach where no value of the metric can be; a difference of two reaches at most across all of them.
  Bounds bounds = bounds_of(metric);
  if (against_baseline) bounds = {bounds.min - bounds.max, bounds.max - bounds.min};
  for (std::size_t i = 0; i < material.arms.size(); ++i) {
    auto const& arm = material.arms[i];
    if (against_baseline && &arm == baseline) continue;
    std::vector<SeriesValues> seeds;
    for (auto const& [seed, history] : arm.histories) {
      auto const found = history.find(metric);
      if (found == history.end()) continue;
      if (!against_baseline) {
        seeds.push_back(found->second);
        continue;
      }
      auto const pair = baseline->histories.find(seed);
      if (pair == baseline->histories.end() || !pair->second.contains(metric)) continue;
      std::map<Index, double> const other(pair->second.at(metric).begin(), pair->second.at(metric).end());
      auto& difference = seeds.emplace_back();
      for (auto const& [step, value] : found->second)
        if (other.contains(step)) difference.emplace_back(step, value - other.at(step));
    }
    auto curve = curve_of(seeds);
    for (auto& point : curve) point.low = std::max(point.low, bounds.min), point.high = std::min(point.high, bounds.max);
    if (curve.size() > 1) traces.push_back({As::line, std::move(curve), style_of(material, i), arm.name});
  }
  return traces;
}

double end_of(FigureLayer const& trace) {
  for (auto point = trace.points.rbegin(); point != trace.points.rend(); ++point)
    if (std::isfinite(point->y)) return point->y;
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<double> ends_of(Traces const& traces) { return mapped(traces, end_of); }

double end_of_training(Traces const& traces) {
  double last = 0;
  for (auto const& trace : traces) last = std::max(last, trace.points.back().x);
  return last;
}

Outliers::Outliers(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.size() < 5) {  // too few to say what is usual, but for what blew up
    spread_ = reach_of(values) / times;
    return;
  }
  middle_ = median(values);
  for (double& value : values) value = std::abs(value - middle_);
  spread_ = median(values);
}

double reach_of(std::vector<double> const& values) {
  double const usual = usual_size(values);
  return usual > 0 ? 1e6 * usual : std::numeric_limits<double>::infinity();
}

Range range_from(Traces const& traces, double from, Outliers const& outlier) {
  Range range;
  for (auto const& trace : traces) {
    if (outlier(end_of(trace))) continue;
    for (std::size_t i = 0; i < trace.points.size(); ++i) {
      auto const& point = trace.points[i];
      if (point.x < from) continue;
      range.include(point.low), range.include(point.high);
      if (i == 0 || trace.points[i - 1].x >= from) continue;
      auto const& before = trace.points[i - 1];  // the line from it is seen from there on
      double const share = (from - before.x) / (point.x - before.x);
      range.include(std::lerp(before.low, point.low, share)), range.include(std::lerp(before.high, point.high, share));
    }
  }
  range.widen(0.04);
  return range;
}

std::vector<FigureLayer> layers_of(Traces const& traces, Range const& range, bool bands) {
  std::vector<FigureLayer> below, above;
  for (auto const& trace : traces) {
    if (double const end = end_of(trace); std::isfinite(end) && !range.holds(end)) continue;
    if (bands) below.push_back({As::band, trace.points, trace.look});
    above.push_back(trace);
  }
  below.insert(below.end(), above.begin(), above.end());
  return below;
}

std::vector<EndLabel> ends_within(Traces const& traces, Range const& range) {
  std::vector<EndLabel> labels;
  for (auto const& trace : traces) {
    double const end = end_of(trace);
    auto& label = labels.emplace_back(EndLabel{trace.name, "", end, trace.look.colour});
    if (!std::isfinite(trace.points.back().y))
      label.more = " (not finite)";
    else if (!range.holds(end))
      label.more =
          fmt::format(" {} {}", end > range.high ? "↑" : "↓", std::abs(end) >= 1e5 ? short_number(end, 0) : fmt::format("{:.3g}", end));
  }
  return labels;
}

Axis steps_axis(double from, double to) { return axis_over(Range{from, to}, "step"); }

std::string seeds_text(Material const& material) {
  if (material.single) return "One run";
  std::string fewer;
  for (auto const& arm : material.arms)
    if (std::size_t const curves = arm.histories.size(); curves > 0 && curves < material.seeds.size())
      fewer += fmt::format("{}{}: the {} that have ended", fewer.empty() ? "" : ", ", short_name(arm), curves);
  return fmt::format("Mean and 95 % interval over {}{}", plural(material.seeds.size(), "seed"), fewer.empty() ? "" : " (" + fewer + ")");
}

}  // namespace heed
