#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/table.hpp"
#include "experiments/report/grid.hpp"
#include "experiments/report/layout.hpp"
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
  auto const names = mapped(tuning.points, [](auto const& point) {
    return fmt::format("{}", fmt::join(mapped(point.keys, [](auto const& each) { return each.second; }), ", "));
  });
  auto const numbers = numbers_of(tuning);
  auto const keys = mapped(tuning.points.front().keys, [&](auto const& key) { return numbers ? key.first : last_word(key.first); });
  Axis axis = axis_of_names(names, fmt::format("{}", fmt::join(keys, ", ")), 0.4);
  if (!numbers) return axis;
  auto const ticks = std::move(axis.ticks);
  axis = axis_of_values({numbers->begin(), numbers->end()}, axis.name);
  axis.ticks = ticks;
  auto const share = [&](double x) {
    return axis.log ? std::log(x / axis.low) / std::log(axis.high / axis.low) : (x - axis.low) / (axis.high - axis.low);
  };
  std::map<double, std::string*> rising;
  for (std::size_t i = 0; i < ticks.size(); ++i) rising[axis.ticks[i].at = (*numbers)[i]] = &axis.ticks[i].text;
  double last = -1;
  for (auto const& [at, text] : rising)  // of points that were drawn, some are too near for two labels
    if (share(at) - last < 0.07)
      text->clear();
    else
      last = share(at);
  return axis;
}

/// How large a value may be on a scale that shows what is chosen: ten times the (lower) median of the chosen scores.
double reach_of_choices(TuningScores const& tuning) {
  std::vector<double> scores;
  for (auto const& arm : tuning.arms)
    if (arm.chosen && arm.scores[*arm.chosen]) scores.push_back(*arm.scores[*arm.chosen]);
  double const usual = usual_size(scores);
  return usual > 0 ? 10 * usual : std::numeric_limits<double>::max();
}

}  // namespace

std::optional<Figure> tuning_figure(Material const& material) {
  if (!material.tuning || material.tuning->points.empty()) return std::nullopt;
  auto const& tuning = *material.tuning;
  auto const axis = grid_axis(tuning);
  double const reach = reach_of_choices(tuning);
  Range range;
  Traces traces;
  std::vector<FigureLayer> layers, rings;
  for (std::size_t i = 0; i < tuning.arms.size() && i < material.arms.size(); ++i) {
    auto const& arm = tuning.arms[i];
    FigureLayer trace{As::joined_dots, {}, style_of(material, i), arm.name};
    trace.look.size = 0.45;
    FigureLayer dots{As::dots, {}, {.colour = trace.look.colour, .width = 0.6, .size = 0.3, .open = true}};
    FigureLayer ring{As::dots, {}, {.colour = trace.look.colour, .width = 1.4, .size = 1.3, .open = true}};
    auto const put = [&](std::size_t point, double value, FigureLayer& layer) {
      if (!(std::abs(value) <= reach)) return;
      range.include(value);
      layer.points.push_back(CurvePoint::bare(axis.ticks[point].at, value));
    };
    for (std::size_t point = 0; point < arm.scores.size(); ++point) {
      if (auto const score = arm.scores[point]) trace.points.push_back(CurvePoint::bare(axis.ticks[point].at, *score));
      for (double const value : arm.values[point]) put(point, value, dots);
    }
    std::ranges::sort(trace.points, {}, &CurvePoint::x);
    if (!std::isfinite(end_of(trace))) continue;  // no score
    if (arm.chosen && arm.scores[*arm.chosen]) put(*arm.chosen, *arm.scores[*arm.chosen], ring);
    traces.push_back(trace);
    if (dots.points.empty()) continue;
    layers.push_back(std::move(trace));
    layers.push_back(std::move(dots));
    rings.push_back(std::move(ring));
  }
  if (layers.empty()) return std::nullopt;
  range.widen(0.06);
  layers.insert(layers.end(), rings.begin(), rings.end());
  auto const name = axis_name(material, material.metric);
  return Figure{
      .name = "tuning",
      .title = name + " over the tuning grid",
      .caption = fmt::format(
          "Lines are means over {} that the comparison does not use, small dots are trials; a ring marks the selected value of each "
          "arm. A line that leaves the frame continues to values in the table. {} is better.",
          plural(tuning.seeds.size(), "seed"), material.better == "lower" ? "Lower" : "Higher"),
      .panels = {{.x = axis, .y = axis_over(range, name), .layers = std::move(layers), .ends = ends_within(traces, range)}},
      .frame_height = height_for(traces.size())};
}

}  // namespace heed
