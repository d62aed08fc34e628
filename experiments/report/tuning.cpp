#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/table.hpp"
#include "experiments/report/figures.hpp"
#include "experiments/report/grid.hpp"
#include "experiments/report/traces.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace {

/// The numbers of a grid of one key; nothing if there are more keys, or other values.
std::optional<std::vector<double>> numbers_of(TuningScores const& tuning) {
  std::vector<double> numbers;
  for (auto const& point : tuning.points) {
    auto const value = point.keys.size() == 1 ? parsed_number<double>(point.keys.front().second) : std::nullopt;
    if (!value || !std::isfinite(*value)) return std::nullopt;
    numbers.push_back(*value);
  }
  return numbers;
}

/// The axis of the grid's points, a tick for each.
Axis grid_axis(TuningScores const& tuning) {
  std::vector<std::string> names, keys;
  for (auto const& point : tuning.points) {
    std::vector<std::string> values;
    for (auto const& [key, value] : point.keys) values.push_back(value);
    names.push_back(fmt::format("{}", fmt::join(values, ", ")));
  }
  auto const numbers = numbers_of(tuning);
  for (auto const& [key, value] : tuning.points.front().keys) keys.push_back(numbers ? key : last_word(key));
  Axis axis = axis_of(names, fmt::format("{}", fmt::join(keys, ", ")), 0.4);
  if (!numbers) return axis;
  auto const ticks = std::move(axis.ticks);
  axis = axis_of_values({numbers->begin(), numbers->end()}, axis.name);
  axis.ticks = ticks;
  for (std::size_t i = 0; i < ticks.size(); ++i) axis.ticks[i].at = (*numbers)[i];
  return axis;
}

/// The arms' scores as curves, from left to right; an arm without a score is left out.
std::vector<Trace> scores_of(Material const& material, Axis const& axis) {
  std::vector<Trace> traces;
  for (std::size_t i = 0; i < material.tuning->arms.size() && i < material.arms.size(); ++i) {
    auto const& arm = material.tuning->arms[i];
    Trace trace{.name = arm.name, .look = style_of(material, i), .curve = {}, .arm = i};
    for (std::size_t point = 0; point < arm.scores.size(); ++point)
      if (auto const score = arm.scores[point]) trace.curve.push_back({axis.ticks[point].at, *score, *score, *score});
    std::ranges::sort(trace.curve, {}, &CurvePoint::x);
    if (std::isfinite(trace.end())) traces.push_back(std::move(trace));
  }
  return traces;
}

/// How large a value may be on a scale that shows what is chosen: ten times the (lower) median of the chosen scores.
double reach_of_choices(TuningScores const& tuning) {
  std::vector<double> scores;
  for (auto const& arm : tuning.arms)
    if (arm.chosen && arm.scores[*arm.chosen]) scores.push_back(std::abs(*arm.scores[*arm.chosen]));
  std::ranges::sort(scores);
  double const usual = scores.empty() ? 0 : scores[(scores.size() - 1) / 2];
  return usual > 0 && std::isfinite(usual) ? 10 * usual : std::numeric_limits<double>::max();
}

}  // namespace

std::optional<Figure> tuning_figure(Material const& material) {
  if (!material.tuning || material.tuning->points.empty()) return std::nullopt;
  auto const axis = grid_axis(*material.tuning);
  auto const traces = scores_of(material, axis);
  if (traces.empty()) return std::nullopt;

  Range range;
  double const reach = reach_of_choices(*material.tuning);
  std::vector<FigureLayer> layers, rings;
  for (auto const& trace : traces) {
    auto const& arm = material.tuning->arms[trace.arm];
    FigureLayer dots{As::dots, {}, {.colour = trace.look.colour, .width = 0.6, .size = 0.3, .open = true}};
    FigureLayer ring{As::dots, {}, {.colour = trace.look.colour, .width = 1.4, .size = 1.3, .open = true}};
    auto const put = [&](std::size_t point, double value, FigureLayer& layer) {
      if (!(std::abs(value) <= reach)) return;
      range.include(value);
      layer.points.push_back({axis.ticks[point].at, value, value, value});
    };
    for (std::size_t point = 0; point < arm.values.size(); ++point)
      for (double const value : arm.values[point]) put(point, value, dots);
    if (arm.chosen && arm.scores[*arm.chosen]) put(*arm.chosen, *arm.scores[*arm.chosen], ring);
    if (dots.points.empty()) continue;
    layers.push_back({As::joined_dots, trace.curve, trace.look});
    layers.back().look.size = 0.45;
    layers.push_back(std::move(dots));
    rings.push_back(std::move(ring));
  }
  if (layers.empty()) return std::nullopt;
  range.widen(0.06);
  layers.insert(layers.end(), rings.begin(), rings.end());

  auto figure = labelled_figure(traces, range, axis_name(material, material.metric));
  figure.name = "tuning";
  figure.title = axis_name(material, material.metric) + " over the tuning grid";
  figure.panels.front().x = axis;
  figure.panels.front().layers = std::move(layers);
  figure.caption = fmt::format(
      "Lines are means over {} seed{} that the comparison does not use, small dots are trials; a ring marks the selected value of each "
      "arm. A line that leaves the frame continues to values in the table. {} is better.",
      material.tuning->seeds.size(), material.tuning->seeds.size() == 1 ? "" : "s", material.better == "lower" ? "Lower" : "Higher");
  return figure;
}

}  // namespace heed
