#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/table.hpp"
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

/// Colour, dash and mark of the level of a factor that lines show.
struct PanelStyle {
  std::string colour;
  std::size_t dash, mark;
};
PanelStyle look_of(std::size_t level) {
  constexpr std::size_t marks[] = {7, 5, 9, 11, 13, 15};
  return {line_colour(level % 7), 1 + level % 5, marks[level % 6]};
}

/// Small panels below a legend, with room for the x axis below the lowest.
PanelGrid layout_of(std::size_t count, double bottom) {
  constexpr double left = 0.62, right = 0.14, gap = 0.26;
  std::size_t const across = count <= 3 ? count : count == 4 ? 2 : 3;
  double const width = PanelGrid::width_between(left, right, gap, across);
  return {.count = count,
          .across = across,
          .left = left,
          .gap = gap,
          .width = width,
          .height = std::clamp(0.62 * width, 1.15, 1.9),
          .head = 0.22,
          .above = 0.2,
          .below = bottom};
}

/// A line above all panels that says what the lines are.
std::string legend(Grid const& grid, std::size_t factor, double height, char const* style) {
  std::vector<std::string> parts;
  for (std::size_t level = 0; level < grid.factors[factor].labels.size(); ++level) {
    auto const look = look_of(level);
    parts.push_back(fmt::format("NaN with {} lw 1.3 dt {} pt {} ps 0.6 lc rgb '{}' title {}", style, look.dash, look.mark, look.colour,
                                gnuplot_text(cut(grid.factors[factor].labels[level], 24))));
  }
  return fmt::format(
             "unset border\nset tics nomirror scale 0\nset format ''\nunset grid\nset key at screen 0.5, screen {:.4f} center center "
             "horizontal samplen 3 width 1\n",
             1 - 0.1 / height) +
         margins(0.1, Figure::width - 0.1, 0.1, 0.2, height) + "set xrange [0:1]\nset yrange [0:1]\n" +
         fmt::format("plot {}\n", fmt::join(parts, ", \\\n  ")) + plot_style + "set format '% h'\n";
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

std::string titled(std::string const& title, double width) {
  return fmt::format("set label 100 {} at graph 0, graph 1 offset character 0,0.6 left\n",
                     gnuplot_text(cut(title, static_cast<std::size_t>(width / 0.066))));
}

std::string scale(Range const& range, bool labelled, std::string const& label) {
  return fmt::format("set yrange [{:.8g}:{:.8g}]\n", range.low, range.high) +
         (labelled ? fmt::format("set ylabel {} offset 0.5\nset format y '% h'\n", gnuplot_text(label))
                   : "unset ylabel\nset format y ''\n");
}

}  // namespace

std::optional<Figure> interaction(Material const& material, Grid const& grid) {
  auto const order = by_levels(grid);
  std::size_t const along = order[0], lines = order[1];
  auto const panels = grid.combinations_without({along, lines});
  auto const& places = grid.factors[along].labels;
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

  std::size_t longest = 0;
  for (auto const& label : places) longest = std::max(longest, columns(cut(label, 18)));
  double const across = layout_of(panels.size(), 0).width;
  bool const turned = 0.066 * static_cast<double>(longest) > across / static_cast<double>(places.size());
  auto const layout = layout_of(panels.size(), turned ? 0.4 + 0.045 * static_cast<double>(longest) : 0.46);
  std::string tics, data, plots;
  for (std::size_t i = 0; i < places.size(); ++i) tics += fmt::format("{}{} {}", i > 0 ? ", " : "", gnuplot_tick(cut(places[i], 18)), i);
  for (std::size_t p = 0; p < panels.size(); ++p) {
    std::vector<std::string> parts;
    for (std::size_t line = 0; line < count; ++line) {
      data += fmt::format("$p{}_{} << EOD\n", p, line);
      double const aside = 0.09 * (static_cast<double>(line) - static_cast<double>(count - 1) / 2);
      for (std::size_t level = 0; level < places.size(); ++level) {
        auto place = panels[p];
        place[along] = level, place[lines] = line;
        auto const found = grid.arm_at(place);
        if (!found || !material.arms[*found].has_finite_mean()) continue;
        auto const& estimate = *material.arms[*found].estimate;
        auto const interval = estimate.interval_or_mean();
        data +=
            fmt::format("{:.4f} {:.8g} {:.8g} {:.8g}\n", static_cast<double>(level) + aside, estimate.mean, interval.low, interval.high);
      }
      data += "EOD\n";
      auto const look = look_of(line);
      parts.push_back(fmt::format("$p{}_{} using 1:2:3:4 with yerrorlines notitle pt {} ps 0.6 lw 1.3 dt {} lc rgb '{}'", p, line,
                                  look.mark, look.dash, look.colour));
    }
    plots += layout.place(p) + titled(panel_title(grid, panels[p], {along, lines}), layout.width) +
             scale(range, layout.first_of_row(p), axis_name(material, material.metric)) +
             fmt::format("set xrange [-0.4:{}]\n", static_cast<double>(places.size()) - 0.6) +
             (layout.lowest(p) ? fmt::format("set xtics {} ({})\nset xlabel {} offset 0,{}\n", turned ? "rotate by 25 right" : "norotate",
                                             tics, gnuplot_text(grid.name(along)), turned ? 0.2 : 0.5)
                               : "set format x ''\nunset xlabel\n") +
             fmt::format("plot {}\n", fmt::join(parts, ", \\\n  "));
  }
  Figure figure{.name = "interaction",
                .title = axis_name(material, material.metric) + " of every combination",
                .caption = "",
                .height = layout.figure_height(),
                .commands = data + plot_style + "set multiplot\n" + legend(grid, lines, layout.figure_height(), "linespoints") + plots +
                            "unset multiplot\n"};
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
  auto const layout = layout_of(panels.size(), 0.46);
  auto const label = !against_baseline       ? axis_name(material, metric)
                     : material.unit.empty() ? "difference"
                                             : "difference (" + material.unit + ")";
  std::string plots;
  for (std::size_t p = 0; p < panels.size(); ++p) {
    std::vector<std::string> bands, parts;
    for (std::size_t i = 0; i < traces.size(); ++i) {
      auto place = grid.places[traces[i].arm];
      if (place.empty() || outlier(traces[i].end())) continue;
      auto const look = look_of(place[lines]);
      place[lines] = 0;
      if (place != panels[p]) continue;
      bands.push_back(
          fmt::format("$c{} using 1:3:4 with filledcurves notitle fc rgb '{}' fs transparent solid 0.18 noborder", i, look.colour));
      parts.push_back(fmt::format("$c{} using 1:2 with lines notitle lc rgb '{}' lw 1.3 dt {}", i, look.colour, look.dash));
    }
    if (against_baseline) parts.insert(parts.begin(), "0 with lines notitle lc rgb 'black' lw 0.8");
    bands.insert(bands.end(), parts.begin(), parts.end());
    if (bands.empty()) bands.emplace_back("NaN notitle");
    plots += layout.place(p) + titled(panel_title(grid, panels[p], {lines}), layout.width) + scale(range, layout.first_of_row(p), label) +
             x_steps(0, last) + (layout.lowest(p) ? "set format x '% h'\nset xlabel offset 0,0.5\n" : "set format x ''\nunset xlabel\n") +
             fmt::format("plot {}\n", fmt::join(bands, ", \\\n  "));
  }
  Figure figure{.name = against_baseline ? "difference_curves" : figure_name(metric),
                .title = against_baseline ? "Difference to " + material.baseline + " along training" : axis_name(material, metric),
                .caption = "",
                .height = layout.figure_height(),
                .commands = blocks(traces) + plot_style + "set multiplot\n" + legend(grid, lines, layout.figure_height(), "lines") + plots +
                            "unset multiplot\n"};
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
