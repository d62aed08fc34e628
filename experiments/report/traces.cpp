#include "experiments/report/traces.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "experiments/config/table.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/report/layout.hpp"

namespace heed {

namespace {

using SeriesValues = std::vector<std::pair<Index, double>>;

constexpr double blown_up = 1e6;  ///< times what is usual

/// A value beside the name of a curve that ends beyond the frame.
std::string end_text(double value) { return std::abs(value) >= 1e5 ? short_number(value, 0) : fmt::format("{:.3g}", value); }

/// An interval by Student's t may reach where no value of the metric can be; a difference of two reaches at most across all of them.
void keep_within(Bounds bounds, bool of_differences, std::vector<Trace>& traces) {
  if (of_differences) bounds = {bounds.least - bounds.greatest, bounds.greatest - bounds.least};
  for (auto& trace : traces) {
    for (auto& point : trace.curve) {
      point.low = std::max(point.low, bounds.least);
      point.high = std::min(point.high, bounds.greatest);
    }
  }
}

}  // namespace

Look style_of(Material const& material, std::size_t arm) {
  constexpr std::size_t colours = 6;
  auto const baseline =
      static_cast<std::size_t>(std::ranges::find(material.arms, material.baseline, &ArmResult::name) - material.arms.begin());
  if (arm == baseline) return {.colour = line_colour(0)};
  std::size_t const place = arm - (arm > baseline ? 1 : 0);
  return {.colour = line_colour(1 + place % colours), .dash = 2 + (place + place / colours) % 4};
}

std::string short_name(ArmResult const& arm) { return cut(arm.name, 32); }

std::string axis_name(Material const& material, std::string metric) {
  auto const* const info = find_metric(metric);
  std::string const unit = metric == material.metric ? material.unit : info != nullptr ? info->unit : "";
  if (metric == "loss") metric = "training loss";
  if (std::string_view constexpr probe = "probe."; metric.starts_with(probe)) metric.erase(0, probe.size());
  std::ranges::replace(metric, '.', ' ');
  std::ranges::replace(metric, '_', ' ');
  return unit.empty() ? metric : fmt::format("{} ({})", metric, unit);
}

std::vector<Trace> traces_of(Material const& material, std::string const& metric, bool against_baseline) {
  std::vector<Trace> traces;
  auto const* const baseline = material.baseline_arm();
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
      SeriesValues difference;
      for (auto const& [step, value] : found->second)
        if (other.contains(step)) difference.emplace_back(step, value - other.at(step));
      seeds.push_back(std::move(difference));
    }
    auto curve = curve_of(seeds);
    if (curve.size() > 1) traces.push_back({arm.name, style_of(material, i), std::move(curve), i});
  }
  keep_within(bounds_of(metric), against_baseline, traces);
  return traces;
}

std::vector<Trace> published_traces(Material const& material, std::vector<Trace> const& traces) {
  std::vector<Trace> result;
  for (auto const& [name, reported, value] : material.published) {
    Trace trace{.name = name, .look = {.colour = "#707070", .dash = 3 + result.size() % 3}, .curve = {}, .published = true};
    for (auto const& [step, at] : reported) trace.curve.push_back({static_cast<double>(step), at, at, at});
    if (reported.empty()) trace.curve = {{0, value, value, value}, {end_of_training(traces), value, value, value}};
    result.push_back(std::move(trace));
  }
  return result;
}

double Trace::end() const {
  for (auto point = curve.rbegin(); point != curve.rend(); ++point)
    if (std::isfinite(point->y)) return point->y;
  return std::numeric_limits<double>::quiet_NaN();
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

Outliers outliers_among(std::vector<Trace> const& traces) { return Outliers(ends_of(traces)); }

double reach_of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  for (double& value : values) value = std::abs(value);
  std::ranges::sort(values);
  double const usual = values.empty() ? 0 : values[(values.size() - 1) / 2];
  return usual > 0 ? blown_up * usual : std::numeric_limits<double>::infinity();
}

std::vector<double> ends_of(std::vector<Trace> const& traces) {
  std::vector<double> ends;
  for (auto const& trace : traces) ends.push_back(trace.end());
  return ends;
}

Range range_from(std::vector<Trace> const& traces, double from, Outliers const& outlier) {
  Range range;
  for (auto const& trace : traces) {
    if (outlier(trace.end())) continue;
    for (auto const& point : trace.curve) {
      if (point.x < from) continue;
      range.include(point.low);
      range.include(point.high);
    }
  }
  range.widen(0.04);
  return range;
}

std::vector<FigureLayer> layers_of(std::vector<Trace> const& traces, Range const& range, bool bands) {
  std::vector<FigureLayer> below, above;
  for (auto const& trace : traces) {
    if (double const end = trace.end(); std::isfinite(end) && !range.holds(end)) continue;
    if (bands) below.push_back({As::band, trace.curve, trace.look});
    above.push_back({trace.published ? As::joined_dots : As::line, trace.curve, trace.look});
  }
  below.insert(below.end(), above.begin(), above.end());
  return below;
}

std::vector<FigureLayer> joined_layers_of(std::vector<Trace> const& traces) {
  std::vector<FigureLayer> layers;
  for (auto const& trace : traces) {
    layers.push_back({As::joined_intervals, trace.curve, trace.look});
    layers.back().look.mark = layers.size() - 1;
  }
  return layers;
}

std::vector<EndLabel> ends_within(std::vector<Trace> const& traces, Range const& range) {
  std::vector<EndLabel> labels;
  for (auto const& trace : traces) {
    double const end = trace.end();
    auto& label = labels.emplace_back(EndLabel{trace.name, "", end, trace.look.colour});
    if (!std::isfinite(trace.curve.back().y))
      label.more = " (not finite)";
    else if (!range.holds(end))
      label.more = fmt::format(" {} {}", end > range.high ? "↑" : "↓", end_text(end));
  }
  return labels;
}

Axis steps_axis(double from, double to) { return {.name = "step", .low = from, .high = to, .step = tick_step(to - from, 5)}; }

Figure labelled_figure(std::vector<Trace> const& traces, Range const& range, std::string const& y, double least_height) {
  return {.panels = {{.y = axis_over(range, y), .ends = ends_within(traces, range)}},
          .frame_height = height_for(traces.size(), least_height)};
}

double end_of_training(std::vector<Trace> const& traces) {
  double last = 0;
  for (auto const& trace : traces) last = std::max(last, trace.curve.back().x);
  return last;
}

std::string seeds_text(Material const& material) {
  if (material.single) return "One run";
  std::string fewer;
  for (auto const& arm : material.arms)
    if (std::size_t const curves = arm.histories.size(); curves > 0 && curves < material.seeds.size())
      fewer += fmt::format("{}{}: the {} that have ended", fewer.empty() ? "" : ", ", short_name(arm), curves);
  return fmt::format("Mean and 95 % interval over {} seeds{}", material.seeds.size(), fewer.empty() ? "" : " (" + fewer + ")");
}

}  // namespace heed
