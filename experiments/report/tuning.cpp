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

/// Where the points of a grid stand on the x axis.
struct GridAxis {
  std::vector<double> places;  ///< by point
  std::vector<std::string> tics;
  std::string label;
  bool log = false;
  double low = 0, high = 0;
};

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

GridAxis axis_of(TuningScores const& tuning) {
  GridAxis axis;
  if (auto const numbers = numbers_of(tuning)) {
    axis.places = *numbers;
    axis.label = tuning.points.front().keys.front().first;
    auto const [least, greatest] = std::ranges::minmax(*numbers);
    axis.log = least > 0 && greatest >= 4 * least;
    double const aside = axis.log ? std::pow(greatest / least, 0.05) : std::max(0.05 * (greatest - least), 1e-9);
    axis.low = axis.log ? least / aside : least - aside;
    axis.high = axis.log ? greatest * aside : greatest + aside;
  } else {
    for (std::size_t i = 0; i < tuning.points.size(); ++i) axis.places.push_back(static_cast<double>(i));
    std::vector<std::string> keys;
    for (auto const& [key, value] : tuning.points.front().keys) keys.push_back(last_word(key));
    axis.label = fmt::format("{}", fmt::join(keys, ", "));
    axis.low = -0.4;
    axis.high = static_cast<double>(tuning.points.size()) - 0.6;
  }
  for (std::size_t i = 0; i < tuning.points.size(); ++i) {
    std::vector<std::string> values;
    for (auto const& [key, value] : tuning.points[i].keys) values.push_back(value);
    auto const words = fmt::format("{}", fmt::join(values, ", "));
    axis.tics.push_back(fmt::format("{} {:.8g}", gnuplot_tick(cut(words, 18)), axis.places[i]));
  }
  return axis;
}

/// The arms' scores as curves, from left to right; an arm without a score is left out.
std::vector<Trace> scores_of(Material const& material, GridAxis const& axis) {
  std::vector<Trace> traces;
  for (std::size_t i = 0; i < material.tuning->arms.size() && i < material.arms.size(); ++i) {
    auto const& arm = material.tuning->arms[i];
    Trace trace{.name = cut(arm.name, 26), .style = style_of(material, i), .curve = {}, .arm = i};
    for (std::size_t point = 0; point < arm.scores.size(); ++point)
      if (auto const score = arm.scores[point]) trace.curve.push_back({axis.places[point], *score, *score, *score});
    std::ranges::sort(trace.curve, {}, &CurvePoint::step);
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
  auto const axis = axis_of(*material.tuning);
  auto const traces = scores_of(material, axis);
  if (traces.empty()) return std::nullopt;

  Range range;
  double const reach = reach_of_choices(*material.tuning);
  std::string data;
  std::vector<std::string> plots, rings;
  for (std::size_t k = 0; k < traces.size(); ++k) {
    auto const& arm = material.tuning->arms[traces[k].arm];
    auto const& [colour, dash] = traces[k].style;
    std::string dots, ring;
    auto const put = [&](std::size_t point, double value, std::string& text) {
      if (!(std::abs(value) <= reach)) return;
      range.include(value);
      text += fmt::format("{:.8g} {:.8g}\n", axis.places[point], value);
    };
    for (std::size_t point = 0; point < arm.values.size(); ++point)
      for (double const value : arm.values[point]) put(point, value, dots);
    if (arm.chosen && arm.scores[*arm.chosen]) put(*arm.chosen, *arm.scores[*arm.chosen], ring);
    if (dots.empty()) continue;
    data += fmt::format("$d{} << EOD\n{}EOD\n", k, dots);
    plots.push_back(fmt::format("$c{} using 1:2 with linespoints pt 7 ps 0.45 lw 1.3 dt {} lc rgb '{}'", k, dash, colour));
    plots.push_back(fmt::format("$d{} using 1:2 with points pt 6 ps 0.3 lw 0.6 lc rgb '{}'", k, colour));
    if (ring.empty()) continue;
    data += fmt::format("$r{} << EOD\n{}EOD\n", k, ring);
    rings.push_back(fmt::format("$r{} using 1:2 with points pt 6 ps 1.3 lw 1.4 lc rgb '{}'", k, colour));
  }
  if (plots.empty()) return std::nullopt;
  range.widen(0.06);
  plots.insert(plots.end(), rings.begin(), rings.end());

  Figure figure{.name = "tuning",
                .title = axis_name(material, material.metric) + " over the tuning grid",
                .caption = "",
                .height = height_of(traces),
                .commands = ""};
  figure.commands = data + frame_of(traces, range, axis_name(material, material.metric), figure.height) +
                    (axis.log ? "set logscale x\n" : "") + fmt::format("set xtics ({})\n", fmt::join(axis.tics, ", ")) +
                    fmt::format("set xrange [{:.8g}:{:.8g}]\nset xlabel {}\n", axis.low, axis.high, gnuplot_text(axis.label)) +
                    fmt::format("plot {}\n", fmt::join(plots, ", \\\n  "));
  figure.caption = fmt::format(
      "Lines are means over {} seed{} that the comparison does not use, small dots are trials; a ring marks the selected value of each "
      "arm. A line that leaves the frame continues to values in the table. {} is better.",
      material.tuning->seeds.size(), material.tuning->seeds.size() == 1 ? "" : "s", material.better == "lower" ? "Lower" : "Higher");
  return figure;
}

}  // namespace heed
