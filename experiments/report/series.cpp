#include "experiments/report/series.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace heed {

namespace {

Look look_of(Series const& series) {
  if (series.dashed) return {.colour = limit_colour, .dash = 2, .width = 1};
  return {.colour = line_colour(series.look), .mark = series.look, .width = 1.2, .size = 0.45};
}

/// The names of all series, each once.
std::vector<LegendEntry> legend_of(SeriesFigure const& figure) {
  std::vector<LegendEntry> found;
  for (auto const& panel : figure.panels)
    for (auto const& series : panel.series)
      if (!series.name.empty() && std::ranges::find(found, series.name, &LegendEntry::name) == found.end())
        found.push_back({series.name, look_of(series), series.dashed ? As::line : As::joined_dots});
  return found;
}

/// The range of the values; of their decimal logarithms if the axis is logarithmic.
Range range_of(SeriesPanel const& panel) {
  if (panel.low < panel.high) {
    Range given;
    for (double const end : {panel.low, panel.high}) given.include(panel.log_y ? std::log10(end) : end);
    return given;
  }
  Range range;
  auto const include = [&](double y) {
    if (!panel.log_y || y > panel.floor) range.include(panel.log_y ? std::log10(y) : y);
  };
  for (auto const& series : panel.series) {
    for (auto const& point : series.points) {
      if (series.dashed) continue;
      for (auto const end : {point.y, point.y ? std::optional(point.low) : point.y, point.y ? std::optional(point.high) : point.y})
        if (end) include(*end);
      if (point.theory) include(*point.theory);
    }
  }
  range.widen(0.07);
  if (panel.log_y && panel.floor > 0) range.low = std::max(range.low, std::log10(panel.floor));
  return range;
}

/// Ticks of a logarithmic axis: powers of ten, with 2 and 5 times them where these are few, or round numbers within one.
std::vector<Tick> log_ticks(Range const& decades) {
  double const span = decades.high - decades.low, low = std::pow(10, decades.low), high = std::pow(10, decades.high);
  std::vector<Tick> ticks;
  auto const add = [&](double value) { ticks.push_back({value, fmt::format("{:g}", value)}); };
  if (span < 0.7) {
    double const step = tick_step(high - low, 4);
    for (double value = std::ceil(low / step) * step; value <= high; value += step) add(value);
    return ticks;
  }
  int const every = static_cast<int>(std::max(1.0, std::ceil(span / 6)));
  for (int e = static_cast<int>(std::floor(decades.low)); e <= static_cast<int>(std::ceil(decades.high)); ++e)
    for (double const digit : {1.0, 2.0, 5.0}) {
      double const at = std::log10(digit) + e;
      bool const wanted = digit == 1 ? e % every == 0 : span < 1.7;
      if (wanted && at >= decades.low && at <= decades.high) add(digit * std::pow(10, e));
    }
  return ticks;
}

Axis y_axis(SeriesPanel const& panel) {
  Range const range = range_of(panel);
  if (range.is_empty()) return {};
  if (!panel.log_y) return axis_over(range, "", 4);
  return {.low = std::pow(10, range.low), .high = std::pow(10, range.high), .ticks = log_ticks(range), .log = true};
}

/// The axis of all panels: a tick per power of ten or two.
Axis x_axis(SeriesFigure const& figure) {
  Range range;
  for (auto const& panel : figure.panels)
    for (auto const& series : panel.series)
      for (auto const& point : series.points) range.include(point.x);
  if (!(range.low <= range.high)) return {.name = figure.x};
  if (!figure.log_x) {
    auto axis = axis_over(range, figure.x);
    range.widen(0.03);
    axis.low = range.low, axis.high = range.high;
    return axis;
  }
  Axis axis{.name = figure.x, .low = range.low / 1.25, .high = range.high * 1.25, .log = true};
  double const base = figure.ten ? 10 : 2, reach = range.high / range.low;
  double const apart = std::pow(base, figure.ten ? 1 + static_cast<int>(std::log10(reach)) / 6 : reach > 100 ? 2 : 1);
  double const first = figure.ten ? std::pow(10, std::ceil(std::log10(range.low) - 0.01)) : 1;
  for (double x = first; x <= range.high * 1.02; x *= apart)
    if (x >= range.low * 0.98) axis.ticks.push_back({x, fmt::format("{:g}", x)});
  return axis;
}

/// What is beneath, then the lines, then the points.
std::vector<FigureLayer> layers_of(SeriesPanel const& panel) {
  std::vector<FigureLayer> layers = panel.beneath, measurements;
  auto const drawn = [&](std::optional<double> y) { return y && (!panel.log_y || *y > panel.floor); };
  double const floor = panel.log_y ? std::max(panel.floor, 1e-300) / 1e3 : -INFINITY;  // of intervals that reach 0
  for (auto const& series : panel.series) {
    FigureLayer theory{As::line, {}, look_of(series)}, measured{As::intervals, {}, look_of(series)};
    measured.look.width = 1;
    for (auto const& point : series.points) {
      if (drawn(point.theory)) theory.points.push_back({point.x, *point.theory, *point.theory, *point.theory});
      if (drawn(point.y)) measured.points.push_back({point.x, *point.y, std::max(point.low, floor), point.high});
    }
    layers.push_back(std::move(theory));
    measurements.push_back(std::move(measured));
  }
  layers.insert(layers.end(), measurements.begin(), measurements.end());
  return layers;
}

}  // namespace

SeriesPoint joined_point(double x, Estimate const& found) {
  auto const interval = found.interval_or_mean();
  return {x, found.mean, interval.low, interval.high, found.mean};
}

Figure figure_of(SeriesFigure const& figure) {
  Figure result{.name = figure.name,
                .title = figure.title,
                .caption = figure.caption,
                .across = figure.across,
                .legend = legend_of(figure),
                .shared_x = true,
                .further = figure.further};
  auto const x = x_axis(figure);
  for (auto const& panel : figure.panels)
    result.panels.push_back({.title = panel.title, .x = x, .y = y_axis(panel), .layers = layers_of(panel)});
  return result;
}

}  // namespace heed
