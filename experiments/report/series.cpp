#include "experiments/report/series.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/table.hpp"
#include "experiments/report/traces.hpp"

namespace heed {

namespace {

constexpr double left_margin = 0.55, right_margin = 0.12, panel_gap = 0.6;
constexpr std::size_t marks[] = {7, 5, 9, 11, 13, 15};
constexpr char const* limit_colour = "#808080";

/// The names of all series, each once.
std::vector<Series const*> named(SeriesFigure const& figure) {
  std::vector<Series const*> found;
  for (auto const& panel : figure.panels) {
    for (auto const& series : panel.series) {
      if (series.name.empty() || std::ranges::find(found, series.name, [](Series const* s) { return s->name; }) != found.end()) continue;
      found.push_back(&series);
    }
  }
  return found;
}

/// Rows of the legend: as many as its columns of equal width need.
std::size_t legend_rows(std::vector<Series const*> const& names) {
  std::size_t longest = 0;
  for (auto const* const series : names) longest = std::max(longest, columns(series->name));
  auto const across = static_cast<std::size_t>((Figure::width - 0.2) / (0.075 * static_cast<double>(longest) + 0.5));
  return names.empty() ? 0 : (names.size() + across - 1) / across;
}

PanelGrid layout_of(SeriesFigure const& figure) {
  double const width = PanelGrid::width_between(left_margin, right_margin, panel_gap, figure.across);
  return {.count = figure.panels.size(),
          .across = figure.across,
          .left = left_margin,
          .gap = panel_gap,
          .width = width,
          .height = std::clamp(0.6 * width, 1.1, 1.7),
          .head = 0.26,
          .above = 0.08 + 0.17 * static_cast<double>(legend_rows(named(figure))),
          .below = 0.46};
}

std::string legend(SeriesFigure const& figure, PanelGrid const& layout) {
  std::vector<std::string> parts;
  auto const names = named(figure);
  for (auto const* const series : names) {
    auto const title = gnuplot_text(series->name);
    parts.push_back(series->dashed ? fmt::format("NaN with lines lw 1 dt 2 lc rgb '{}' title {}", limit_colour, title)
                                   : fmt::format("NaN with linespoints lw 1.2 pt {} ps 0.5 lc rgb '{}' title {}", marks[series->look % 6],
                                                 line_colour(series->look), title));
  }
  if (parts.empty()) return "";
  return fmt::format(
             "unset border\nunset tics\nunset grid\nset key at screen 0.5, screen {:.4f} center center horizontal samplen 2 width -1 "
             "maxrows {}\nset "
             "xrange [0:1]\nset yrange [0:1]\n",
             1 - layout.above / 2 / layout.figure_height(), legend_rows(names)) +
         margins(0.1, Figure::width - 0.1, 0.1, 0.2, layout.figure_height()) + fmt::format("plot {}\n", fmt::join(parts, ", \\\n  ")) +
         "set tics\n" + plot_style;
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

std::string y_axis(SeriesPanel const& panel) {
  Range const range = range_of(panel);
  if (range.is_empty()) return "set yrange [0:1]\n";
  if (!panel.log_y)
    return fmt::format("unset logscale y\nset yrange [{:.8g}:{:.8g}]\nset ytics {:.6g}\nset format y '%g'\n", range.low, range.high,
                       tick_step(range.high - range.low, 4));
  double const decades = range.high - range.low, low = std::pow(10, range.low), high = std::pow(10, range.high);
  std::string ticks;
  auto const add = [&](double value) { ticks += fmt::format("{}'{:g}' {:g}", ticks.empty() ? "" : ", ", value, value); };
  if (decades < 0.7) {
    double const step = tick_step(high - low, 4);
    for (double value = std::ceil(low / step) * step; value <= high; value += step) add(value);
  }
  int const every = static_cast<int>(std::max(1.0, std::ceil(decades / 6)));
  for (int e = static_cast<int>(std::floor(range.low)); e <= static_cast<int>(std::ceil(range.high)); ++e) {
    if (decades >= 0.7 && e % every == 0) add(std::pow(10, e));
    for (double const digit : {2.0, 5.0})
      if (decades >= 0.7 && decades < 1.7) add(digit * std::pow(10, e));
  }
  return fmt::format("set logscale y\nset yrange [{:.8g}:{:.8g}]\nset ytics ({})\n", low, high, ticks);
}

std::string x_axis(SeriesFigure const& figure, bool lowest) {
  double least = INFINITY, most = -INFINITY;
  for (auto const& panel : figure.panels) {
    for (auto const& series : panel.series) {
      for (auto const& point : series.points) least = std::min(least, point.x), most = std::max(most, point.x);
    }
  }
  std::string const label = lowest ? fmt::format("set xlabel {} offset 0,0.5\n", gnuplot_text(figure.x)) : "unset xlabel\n";
  if (!figure.log_x) {
    double const by = 0.03 * (most - least);
    return fmt::format("set xrange [{:.8g}:{:.8g}]\nset xtics {:g}\nset format x '{}'\n{}", least - by, most + by,
                       tick_step(most - least, 5), lowest ? "%g" : "", label);
  }
  std::string ticks;
  if (figure.ten) {
    int const apart = 1 + static_cast<int>(std::log10(most / least)) / 6;
    for (int e = static_cast<int>(std::ceil(std::log10(least) - 0.01)); e <= std::floor(std::log10(most) + 0.01); e += apart)
      ticks += fmt::format("{}'{}' 1e{}", ticks.empty() ? "" : ", ", lowest ? fmt::format("{:g}", std::pow(10, e)) : "", e);
    return fmt::format("set logscale x 10\nset xrange [{:.8g}:{:.8g}]\nset xtics ({})\n{}", least / 1.25, most * 1.25, ticks, label);
  }
  for (double x = 1; x <= most * 1.01; x *= most / least > 100 ? 4 : 2)
    if (x >= least) ticks += fmt::format("{}'{}' {:g}", ticks.empty() ? "" : ", ", lowest ? fmt::format("{:g}", x) : "", x);
  return fmt::format("set logscale x 2\nset xrange [{:.8g}:{:.8g}]\nset xtics ({})\n{}", least / 1.25, most * 1.25, ticks, label);
}

/// Data blocks of a panel's series and what is plotted of them.
std::string plotted(SeriesPanel const& panel, std::size_t p) {
  std::string data = panel.behind;
  std::vector<std::string> lines, points;
  double const floor = panel.log_y ? std::max(panel.floor, 1e-300) / 1e3 : -INFINITY;  // of intervals that reach 0
  for (std::size_t s = 0; s < panel.series.size(); ++s) {
    auto const& series = panel.series[s];
    std::string theory, measured;
    for (auto const& point : series.points) {
      bool const drawn = !panel.log_y || !point.theory || *point.theory > panel.floor;
      if (point.theory && drawn) theory += fmt::format("{:.8g} {:.8g}\n", point.x, *point.theory);
      if (point.y && (!panel.log_y || *point.y > panel.floor))
        measured += fmt::format("{:.8g} {:.8g} {:.8g} {:.8g}\n", point.x, *point.y, std::max(point.low, floor), point.high);
    }
    auto const colour = series.dashed ? limit_colour : line_colour(series.look);
    if (!theory.empty()) {
      data += fmt::format("$t{}_{} << EOD\n{}EOD\n", p, s, theory);
      lines.push_back(fmt::format("$t{}_{} using 1:2 with lines notitle lw {} dt {} lc rgb '{}'", p, s, series.dashed ? 1.0 : 1.2,
                                  series.dashed ? 2 : 1, colour));
    }
    if (!measured.empty()) {
      data += fmt::format("$m{}_{} << EOD\n{}EOD\n", p, s, measured);
      bool const bare = std::ranges::all_of(series.points, [](SeriesPoint const& point) { return !point.y || point.low == point.high; });
      points.push_back(fmt::format("$m{}_{} using {} notitle pt {} ps 0.45 lw 1 lc rgb '{}'", p, s,
                                   bare ? "1:2 with points" : "1:2:3:4 with yerrorbars", marks[series.look % 6], colour));
    }
  }
  auto parts = panel.beneath;
  parts.insert(parts.end(), lines.begin(), lines.end());
  parts.insert(parts.end(), points.begin(), points.end());
  if (parts.empty()) parts.emplace_back("NaN notitle");
  return data + fmt::format("plot {}\n", fmt::join(parts, ", \\\n  "));
}

}  // namespace

SeriesPoint joined_point(double x, Estimate const& found) {
  auto const interval = found.interval_or_mean();
  return {x, found.mean, interval.low, interval.high, found.mean};
}

Figure figure_of(SeriesFigure const& figure) {
  auto const layout = layout_of(figure);
  // Data blocks cannot be defined inside of a multiplot's plot command, but between two of them.
  std::string commands = std::string(plot_style) + "set multiplot\n" + legend(figure, layout) + "set key off\n";
  for (std::size_t p = 0; p < figure.panels.size(); ++p) {
    auto const& panel = figure.panels[p];
    commands += layout.place(p) + x_axis(figure, layout.lowest(p)) + y_axis(panel) +
                fmt::format("set label 100 {} at graph 0, graph 1 offset character 0,0.6 left\n", gnuplot_text(panel.title)) +
                plotted(panel, p);
  }
  return {.name = figure.name,
          .title = figure.title,
          .caption = figure.caption,
          .height = layout.figure_height(),
          .commands = commands + "unset multiplot\n",
          .further = figure.further};
}

}  // namespace heed
