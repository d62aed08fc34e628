#include "experiments/report/traces.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/table.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/statistics.hpp"

namespace heed {

namespace {

using SeriesValues = std::vector<std::pair<Index, double>>;

constexpr double blown_up = 1e6;  ///< times what is usual
constexpr char const* not_finite = " (not finite)";

/// Whether a value has more than the few characters that labels leave room for.
bool is_long(double value) { return std::abs(value) >= 1e5; }

/// A value beside the name of a curve that ends beyond the frame.
std::string end_text(double value) { return is_long(value) ? short_number(value, 0) : fmt::format("{:.3g}", value); }

/// An interval by Student's t may reach where no value of the metric can be; a difference of two reaches at most across all of them.
void keep_within(Bounds bounds, bool of_differences, std::vector<Trace>& traces) {
  if (of_differences) bounds = {bounds.min - bounds.max, bounds.max - bounds.min};
  for (auto& trace : traces) {
    for (auto& point : trace.curve) {
      point.low = std::max(point.low, bounds.min);
      point.high = std::min(point.high, bounds.max);
    }
  }
}

}  // namespace

// A mark clears no room around itself: intervals may be shorter than that.
char const* const plot_style =
    "set border 3 lw 0.8 lc rgb 'black'\nset tics nomirror out scale 0.5\nset xlabel offset 0,0.5\nset grid y lc rgb '#D9D9D9' lt 1 lw "
    "0.5\nset key off\nset pointintervalbox 0.01\n";

char const* const cividis =
    "set palette defined (0 '#00224E', 1 '#123570', 2 '#3B496C', 3 '#575D6D', 4 '#707173', 5 '#8A8678', 6 '#A59C74', 7 '#C3B369', 8 "
    "'#E1CC55', 9 '#FEE838')\n";

Style style_of(Material const& material, std::size_t arm) {
  constexpr std::size_t colours = 6;
  auto const baseline =
      static_cast<std::size_t>(std::ranges::find(material.arms, material.baseline, &ArmResult::name) - material.arms.begin());
  if (arm == baseline) return {line_colour(0), 1};
  std::size_t const place = arm - (arm > baseline ? 1 : 0);
  return {line_colour(1 + place % colours), 2 + (place + place / colours) % 4};
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
    if (curve.size() > 1) traces.push_back({short_name(arm), style_of(material, i), std::move(curve), i});
  }
  keep_within(bounds_of(metric), against_baseline, traces);
  return traces;
}

std::vector<Trace> published_traces(Material const& material, std::vector<Trace> const& traces) {
  std::vector<Trace> result;
  for (auto const& [name, reported, value] : material.published) {
    Trace trace{.name = cut(name, 32), .style = {"#707070", 3 + result.size() % 3}, .curve = {}, .published = true};
    for (auto const& [step, at] : reported) trace.curve.push_back({static_cast<double>(step), at, at, at});
    if (reported.empty()) trace.curve = {{0, value, value, value}, {end_of_training(traces), value, value, value}};
    result.push_back(std::move(trace));
  }
  return result;
}

void Range::include(double value) {
  if (!std::isfinite(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

void Range::widen(double share) {
  double const by = high > low ? share * (high - low) : std::max(1e-9, std::abs(low) * share);
  low -= by;
  high += by;
}

double Trace::end() const {
  for (auto point = curve.rbegin(); point != curve.rend(); ++point)
    if (std::isfinite(point->mean)) return point->mean;
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

std::string blocks(std::vector<Trace> const& traces) {
  std::string text;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    text += fmt::format("$c{} << EOD\n", i);
    for (auto const& point : traces[i].curve)
      text +=
          std::isfinite(point.mean) ? fmt::format("{:.8g} {:.8g} {:.8g} {:.8g}\n", point.step, point.mean, point.low, point.high) : "\n";
    text += "EOD\n";
  }
  return text;
}

std::string plot(std::vector<Trace> const& traces, Range const& range) {
  std::vector<std::string> bands, parts;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    auto const& [colour, dash] = traces[i].style;
    if (double const end = traces[i].end(); std::isfinite(end) && !range.holds(end)) continue;
    bands.push_back(fmt::format("$c{} using 1:3:4 with filledcurves fc rgb '{}' fs transparent solid 0.18 noborder", i, colour));
    parts.push_back(fmt::format("$c{} using 1:2 with {} lc rgb '{}' lw 1.3 dt {}", i,
                                traces[i].published ? "linespoints pt 7 ps 0.5" : "lines", colour, dash));
  }
  parts.insert(parts.begin(), bands.begin(), bands.end());
  return fmt::format("plot {}\n", fmt::join(parts, ", \\\n  "));
}

Range range_from(std::vector<Trace> const& traces, double from, Outliers const& outlier) {
  Range range;
  for (auto const& trace : traces) {
    if (outlier(trace.end())) continue;
    for (auto const& point : trace.curve) {
      if (point.step < from) continue;
      range.include(point.low);
      range.include(point.high);
    }
  }
  range.widen(0.04);
  return range;
}

std::string direct_labels(std::vector<Trace> const& traces, Range const& range, double height) {
  std::vector<double> heights;
  for (auto const& trace : traces) heights.push_back(std::isfinite(trace.end()) ? std::clamp(range.place(trace.end()), 0.0, 1.0) : 1);
  heights = spread(heights, label_height / height);
  std::string text;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    double const end = traces[i].end();
    std::string name = traces[i].name;
    if (!std::isfinite(traces[i].curve.back().mean))
      name += not_finite;
    else if (!range.holds(end))
      name = fmt::format("{} {} {}", end > range.high ? "↑" : "↓", name, end_text(end));
    text += fmt::format("set label {} {} at graph 1.03, graph {:.4f} left tc rgb '{}'\n", i + 1, gnuplot_text(name), heights[i],
                        traces[i].style.colour);
  }
  return text;
}

double label_width(std::vector<Trace> const& traces) {
  std::size_t longest = 0;
  for (auto const& trace : traces) {
    bool const is_finite = std::isfinite(trace.curve.back().mean);
    std::size_t const beside = !is_finite ? columns(not_finite) : is_long(trace.end()) ? 3 + columns(end_text(trace.end())) : 7;
    longest = std::max(longest, columns(trace.name) + beside);
  }
  return std::min(1.7, 0.1 + 0.066 * static_cast<double>(longest));
}

std::string y_axis(std::string const& name, Range const& range) {
  return (name.empty() ? "unset ylabel\n" : fmt::format("set ylabel {} offset 0.5\n", gnuplot_text(name))) +
         fmt::format("set yrange [{:.8g}:{:.8g}]\nset ytics {:.8g}\n", range.low, range.high, tick_step(range.high - range.low, 5));
}

double y_axis_width(std::string const& name, Range const& range) {
  double const step = tick_step(range.high - range.low, 5);
  std::size_t longest = 0;
  for (double const tick : {std::ceil(range.low / step), std::floor(range.high / step)})
    longest = std::max(longest, fmt::format("{:g}", tick * step).size());
  return 0.2 + 0.08 * static_cast<double>(longest) + (name.empty() ? 0 : 0.22);
}

std::string x_steps(double from, double to) {
  return fmt::format("set xlabel 'step'\nset xrange [{:.8g}:{:.8g}]\nset xtics {:.8g}\n", from, to, tick_step(to - from, 5));
}

double height_of(std::vector<Trace> const& traces, double least) {
  return std::max(least, 0.7 + label_height * static_cast<double>(traces.size()));
}

std::string frame_of(std::vector<Trace> const& traces, Range const& range, std::string const& y, double height) {
  double const top = height - 0.12, bottom = 0.46;
  return blocks(traces) + plot_style + margins(y_axis_width(y, range), Figure::width - label_width(traces), bottom, top, height) +
         y_axis(y, range) + direct_labels(traces, range, top - bottom);
}

double end_of_training(std::vector<Trace> const& traces) {
  double last = 0;
  for (auto const& trace : traces) last = std::max(last, trace.curve.back().step);
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
