#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "experiments/report/figures.hpp"
#include "experiments/report/traces.hpp"

namespace heed {

namespace {

using Levels = std::vector<std::size_t>;

/// The factors by how many levels they have, most first.
std::vector<std::size_t> by_levels(Grid const& grid) {
  std::vector<std::size_t> order(grid.factors.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t f) { return grid.factors[f].levels.size(); });
  return order;
}

/// Small panels with common axes below a legend of a factor's values.
Figure panels_of(Grid const& grid, std::size_t factor, std::size_t count, As as) {
  Figure figure{.across = count <= 3 ? count : count == 4 ? 2 : 3U, .shared_x = true, .shared_y = true};
  for (std::size_t level = 0; level < grid.factors[factor].labels.size(); ++level)
    figure.legend.push_back({grid.factors[factor].labels[level], look_of(level), as});
  return figure;
}

/// "position rotary · heads 2" of the factors that a panel stands for.
std::string panel_title(Grid const& grid, Levels const& combination, std::vector<std::size_t> const& shown) {
  std::string title;
  for (std::size_t f = 0; f < grid.factors.size(); ++f) {
    if (std::ranges::find(shown, f) != shown.end()) continue;
    title += fmt::format("{}{} {}", title.empty() ? "" : " · ", grid.name(f), grid.factors[f].labels[combination[f]]);
  }
  return title;
}

/// The means of the arms of one panel and one line, each level a little aside of those of the other lines.
FigureLayer line_of(Material const& material, Grid const& grid, Levels levels, std::size_t along, double aside, Look const& look) {
  FigureLayer layer{As::joined_intervals, {}, look};
  for (std::size_t level = 0; level < grid.factors[along].levels.size(); ++level) {
    levels[along] = level;
    auto const found = grid.arm_at(levels);
    if (!found || !material.arms[*found].has_finite_mean()) continue;
    auto const& estimate = *material.arms[*found].estimate;
    auto const interval = estimate.interval_or_mean();
    layer.points.push_back({static_cast<double>(level) + aside, estimate.mean, interval.low, interval.high});
  }
  return layer;
}

}  // namespace

std::optional<Figure> interaction(Material const& material, Grid const& grid) {
  auto const order = by_levels(grid);
  std::size_t const along = order[0], lines = order[1];
  auto const panels = grid.combinations_without({along, lines});
  std::size_t const count = grid.factors[lines].levels.size();
  Range range;
  for (std::size_t i = 0; i < material.arms.size(); ++i) {
    auto const& arm = material.arms[i];
    if (!arm.has_finite_mean() || grid.places[i].empty()) continue;
    auto const interval = arm.estimate->interval_or_mean();
    range.include(arm.estimate->mean), range.include(interval.low), range.include(interval.high);
  }
  range.widen(0.06);
  if (range.is_empty()) return std::nullopt;

  auto figure = panels_of(grid, lines, panels.size(), As::joined_intervals);
  figure.name = "interaction";
  figure.title = axis_name(material, material.metric) + " of every combination";
  for (auto levels : panels) {
    Panel panel{.title = panel_title(grid, levels, {along, lines}),
                .x = axis_of(grid.factors[along].labels, grid.name(along), 0.4),
                .y = axis_over(range, axis_name(material, material.metric), 7)};
    for (std::size_t line = 0; line < count; ++line) {
      levels[lines] = line;
      double const aside = 0.09 * (static_cast<double>(line) - static_cast<double>(count - 1) / 2);
      panel.layers.push_back(line_of(material, grid, levels, along, aside, look_of(line)));
    }
    figure.panels.push_back(std::move(panel));
  }
  figure.caption =
      fmt::format("{}; {} is better. Lines are values of {}; lines that are not parallel show an interaction of {} and {}.{}",
                  seeds_text(material), material.better, grid.name(lines), grid.name(along), grid.name(lines),
                  std::ranges::any_of(material.arms, [](ArmResult const& arm) { return arm.estimate && std::isinf(arm.estimate->mean); })
                      ? " Arms with a diverged seed are left out."
                      : "");
  return figure;
}

std::optional<Figure> curve_panels(Material const& material, Grid const& grid, std::string const& metric, bool against_baseline) {
  std::size_t const lines = by_levels(grid).front();
  auto const traces = traces_of(material, metric, against_baseline);
  if (traces.empty()) return std::nullopt;
  double const last = end_of_training(traces);
  auto const outlier = outliers_among(traces);
  Range range = range_from(traces, last / 4, outlier);
  if (against_baseline) range.include(0);
  if (range.is_empty()) return std::nullopt;
  auto const panels = grid.combinations_without({lines});
  auto figure = panels_of(grid, lines, panels.size(), As::line);
  figure.name = against_baseline ? "difference_curves" : figure_name(metric);
  figure.title = against_baseline ? "Difference to " + material.baseline + " along training" : axis_name(material, metric);
  auto const label = !against_baseline       ? axis_name(material, metric)
                     : material.unit.empty() ? "difference"
                                             : "difference (" + material.unit + ")";
  for (auto const& levels : panels) {
    std::vector<Trace> shown;
    for (auto trace : traces) {
      auto place = grid.places[trace.arm];
      if (place.empty() || outlier(trace.end())) continue;
      trace.look = look_of(place[lines]);
      place[lines] = 0;
      if (place == levels) shown.push_back(std::move(trace));
    }
    figure.panels.push_back({.title = panel_title(grid, levels, {lines}),
                             .x = steps_axis(0, last),
                             .y = axis_over(range, label, 7),
                             .layers = layers_of(shown, Range{-INFINITY, INFINITY})});
    if (against_baseline) figure.panels.back().guides.push_back({.at = 0});
  }
  std::string left_out;
  for (auto const& trace : traces)
    if (outlier(trace.end()) || grid.places[trace.arm].empty())
      left_out += fmt::format("{}{} ({:.3g})", left_out.empty() ? "" : ", ", trace.name, trace.end());
  figure.caption = fmt::format("{}{}. One scale, of the last three quarters of training.{}", seeds_text(material),
                               against_baseline ? ", of differences with the same seed and data" : "",
                               left_out.empty() ? "" : " Left out, with their last values: " + left_out + ".");
  return figure;
}

}  // namespace heed
