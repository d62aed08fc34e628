#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/metric/info.hpp"
#include "experiments/report/layout.hpp"
#include "experiments/report/traces.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace {

/// A line through published values of the metric or, for one number, across all steps.
Traces published_traces(Material const& material, double last) {
  Traces traces;
  for (auto const& [name, reported, value] : material.published) {
    auto& trace = traces.emplace_back(FigureLayer{As::joined_dots, {}, {.colour = "#707070", .dash = 3 + traces.size() % 3}, name});
    for (auto const& [step, at] : reported) trace.points.push_back(CurvePoint::bare(static_cast<double>(step), at));
    if (reported.empty()) trace.points = {CurvePoint::bare(0, value), CurvePoint::bare(last, value)};
  }
  return traces;
}

/// How a metric falls or rises: all of training at the left, its second half at the right in a scale of its own.
std::optional<Figure> learning_curves(Material const& material, std::string const& metric) {
  auto traces = traces_of(material, metric, false);
  if (traces.empty()) return std::nullopt;
  double const last = end_of_training(traces);
  bool const beside = metric == material.metric && !material.published.empty();
  if (beside) std::ranges::move(published_traces(material, last), std::back_inserter(traces));
  auto const ends = ends_of(traces);
  Outliers const outlier(ends);
  Range whole, half = range_from(traces, last / 2, outlier);
  double const reach = reach_of(ends);
  auto const include = [&](double value) {
    if (std::abs(value) <= reach) whole.include(value);
  };
  for (auto const& trace : traces) {
    include(trace.points.front().y);
    for (auto const& point : trace.points)
      if (point.x >= last / 10) include(point.low), include(point.high);
  }
  whole.widen(0.04);
  if (half.is_empty() || whole.is_empty()) return std::nullopt;
  auto labels = ends_within(traces, half);
  if (material.single) labels.front().name.clear();  // it is the page's title
  auto const title = axis_name(material, metric);
  return Figure{.name = figure_name(metric),
                .title = title,
                .caption = fmt::format("{}{}. First all of training, then its second half on its own scale{}.", seeds_text(material),
                                       beside ? "; grey: published values" : "",
                                       std::ranges::any_of(ends, outlier) ? ", without arms far from the others (arrows)" : ""),
                .panels = {{.x = steps_axis(0, last), .y = axis_over(whole, title), .layers = layers_of(traces, whole)},
                           {.x = steps_axis(last / 2, last), .y = axis_over(half), .layers = layers_of(traces, half), .ends = labels}},
                .across = 2,
                .frame_height = height_for(traces.size())};
}

/// The paired difference to the baseline along training.
std::optional<Figure> difference_curves(Material const& material) {
  if (material.baseline_arm() == nullptr) return std::nullopt;
  auto const traces = traces_of(material, material.metric, true);
  if (traces.empty()) return std::nullopt;
  double const last = end_of_training(traces);
  Range range = range_from(traces, last / 4, Outliers(ends_of(traces)));
  range.include(0);
  if (range.is_empty()) return std::nullopt;
  return Figure{.name = "difference_curves",
                .title = "Difference to " + material.baseline + " along training",
                .caption = fmt::format("Arm minus {} with the same seed and data; mean and 95 % interval over the seeds. {} is better.",
                                       material.baseline, material.better == "lower" ? "Below 0" : "Above 0"),
                .panels = {{.x = steps_axis(0, last),
                            .y = axis_over(range, "difference in " + axis_name(material, material.metric)),
                            .layers = layers_of(traces, range),
                            .guides = {{.at = 0}},
                            .ends = ends_within(traces, range)}},
                .frame_height = height_for(traces.size(), 1.8)};
}

// ---------------------------------------------------------------- over a number

/// The metric over a varied key with three numbers or more, a line for each choice of the other keys.
std::optional<Figure> over_key(Material const& material, std::string const& key, double reach) {
  Traces traces;
  std::set<double> xs;
  std::map<std::string, std::string> labels;
  std::string left_out;
  for (auto const& arm : material.arms) {
    std::optional<double> x;
    std::vector<std::string> others, words;  // the values of its other keys
    for (auto const& [name, value] : arm.keys) {
      if (name == key)
        x = parsed_number<double>(value);
      else
        others.push_back(value), words.push_back(label_of(value));
    }
    if (!x || !std::isfinite(*x) || !arm.estimate) continue;
    if (!arm.has_finite_mean() || std::abs(arm.estimate->mean) > reach) {
      left_out += (left_out.empty() ? "" : ", ") + short_name(arm);
      continue;
    }
    xs.insert(*x);
    auto const rest = fmt::format("{}", fmt::join(others, ", "));
    labels[rest] = fmt::format("{}", fmt::join(words, ", "));
    auto line = std::ranges::find(traces, rest, &FigureLayer::name);
    if (line == traces.end()) {
      std::size_t const i = traces.size();
      line = traces.insert(line, {As::joined_intervals, {}, {.colour = line_colour(i), .dash = 1 + (i + i / 7) % 5, .mark = i}, rest});
    }
    line->points.push_back(point_of(*x, *arm.estimate));
  }
  if (xs.size() < 3) return std::nullopt;
  auto const names = mapped(labels, [](auto const& each) { return each.second; });
  bool const differ = std::set<std::string>(names.begin(), names.end()).size() == labels.size();
  Range range;
  for (auto& trace : traces) {
    if (differ) trace.name = labels.at(trace.name);
    std::ranges::sort(trace.points, {}, &CurvePoint::x);
    for (auto const& point : trace.points) range.include(point);
  }
  range.widen(0.05);
  if (range.is_empty()) return std::nullopt;
  auto const title = axis_name(material, material.metric);
  return Figure{
      .name = figure_name("over_" + key),
      .title = title + " over " + key,
      .caption = fmt::format("{}.{}", seeds_text(material), left_out.empty() ? "" : " Left out because they diverged: " + left_out + "."),
      .panels = {{.x = axis_of_values(xs, key), .y = axis_over(range, title), .layers = traces, .ends = ends_within(traces, range)}},
      .frame_height = height_for(traces.size())};
}

// ---------------------------------------------------------------- small panels for the values of several keys

using Levels = std::vector<std::size_t>;

/// The factors by how many levels they have, most first.
std::vector<std::size_t> by_levels(Grid const& grid) {
  std::vector<std::size_t> order(grid.factors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t f) { return grid.factors[f].levels.size(); });
  return order;
}

/// Small panels with common axes, below a legend of the values of one factor; numbers have its name: "heads=2".
Figure panels_of(Grid const& grid, std::size_t factor, std::size_t count, As as) {
  Figure figure{.across = count <= 3 ? count : count == 4 ? 2 : 3U, .shared_x = true, .shared_y = true};
  for (auto const& value : grid.factors[factor].labels)
    figure.legend.push_back({parsed_number<double>(value) ? grid.name(factor) + "=" + value : value, look_of(figure.legend.size()), as});
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

/// The means of the arms of one panel and one level of the factor `lines`, a little aside of those of its other levels.
FigureLayer line_of(Material const& material, Grid const& grid, Levels levels, std::size_t along, std::size_t lines, Range& range) {
  double const middle = static_cast<double>(grid.factors[lines].levels.size() - 1) / 2;
  double const aside = 0.09 * (static_cast<double>(levels[lines]) - middle);
  FigureLayer layer{As::joined_intervals, {}, look_of(levels[lines])};
  for (std::size_t level = 0; level < grid.factors[along].levels.size(); ++level) {
    levels[along] = level;
    auto const found = grid.arm_at(levels);
    if (!found || !material.arms[*found].has_finite_mean()) continue;
    layer.points.push_back(point_of(static_cast<double>(level) + aside, *material.arms[*found].estimate));
    range.include(layer.points.back());
  }
  return layer;
}

/// Each arm's mean and interval: one key on the axis, one as lines, a panel per combination of the others. Not parallel: an interaction.
std::optional<Figure> interaction(Material const& material, Grid const& grid) {
  auto const order = by_levels(grid);
  std::size_t const along = order[0], lines = order[1];
  auto const panels = grid.combinations_without({along, lines});
  auto const name = axis_name(material, material.metric);
  auto figure = panels_of(grid, lines, panels.size(), As::joined_intervals);
  Range range;
  for (auto levels : panels) {
    auto& panel = figure.panels.emplace_back(Panel{.title = panel_title(grid, levels, {along, lines})});
    for (levels[lines] = 0; levels[lines] < grid.factors[lines].levels.size(); ++levels[lines])
      panel.layers.push_back(line_of(material, grid, levels, along, lines, range));
  }
  range.widen(0.06);
  if (range.is_empty()) return std::nullopt;
  for (auto& panel : figure.panels) {
    panel.x = axis_of_names(grid.factors[along].labels, grid.name(along), 0.4);
    panel.y = axis_over(range, name, 7);
  }
  figure.name = "interaction";
  figure.title = name + " of every combination";
  figure.caption =
      fmt::format("{}; {} is better. Lines are values of {}; lines that are not parallel show an interaction of {} and {}.{}",
                  seeds_text(material), material.better, grid.name(lines), grid.name(along), grid.name(lines),
                  std::ranges::any_of(material.arms, [](ArmResult const& arm) { return arm.estimate && std::isinf(arm.estimate->mean); })
                      ? " Arms with a diverged seed are left out."
                      : "");
  return figure;
}

/// A metric during training, or its paired differences to the baseline: lines for the key with the most values, a panel for each
/// combination of the others. Nothing without data.
std::optional<Figure> curve_panels(Material const& material, Grid const& grid, std::string const& metric, bool against_baseline) {
  std::size_t const lines = by_levels(grid).front();
  auto const traces = traces_of(material, metric, against_baseline);
  if (traces.empty()) return std::nullopt;
  double const last = end_of_training(traces);
  Outliers const outlier(ends_of(traces));
  Range range = range_from(traces, last / 4, outlier);
  if (against_baseline) range.include(0);
  if (range.is_empty()) return std::nullopt;
  auto const panels = grid.combinations_without({lines});
  auto figure = panels_of(grid, lines, panels.size(), As::line);
  auto const name = axis_name(material, metric);
  figure.name = against_baseline ? "difference_curves" : figure_name(metric);
  figure.title = against_baseline ? "Difference to " + material.baseline + " along training" : name;
  auto const label = !against_baseline ? name : material.unit.empty() ? "difference" : "difference (" + material.unit + ")";
  std::vector<Traces> shown(panels.size());
  std::string left_out;
  for (auto trace : traces) {
    auto levels = grid.levels_by_arm[static_cast<std::size_t>(std::ranges::find(material.arms, trace.name, &ArmResult::name) -
                                                              material.arms.begin())];
    if (levels.empty() || outlier(end_of(trace))) {
      left_out += fmt::format("{}{} ({:.3g})", left_out.empty() ? "" : ", ", trace.name, end_of(trace));
      continue;
    }
    trace.look = look_of(std::exchange(levels[lines], 0));
    at(shown, std::ranges::find(panels, levels) - panels.begin()).push_back(std::move(trace));
  }
  for (std::size_t i = 0; i < panels.size(); ++i)
    figure.panels.push_back({.title = panel_title(grid, panels[i], {lines}),
                             .x = steps_axis(0, last),
                             .y = axis_over(range, label, 7),
                             .layers = layers_of(shown[i], Range{-INFINITY, INFINITY}),
                             .guides = std::vector<Guide>(against_baseline ? 1 : 0)});
  figure.caption = fmt::format("{}{}. One scale, of the last three quarters of training.{}", seeds_text(material),
                               against_baseline ? ", of differences with the same seed and data" : "",
                               left_out.empty() ? "" : " Left out, with their last values: " + left_out + ".");
  return figure;
}

}  // namespace

// ---------------------------------------------------------------- which metrics

std::string numbers_in_order(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    auto const digits = std::min(text.find_first_not_of("0123456789"), text.size());
    result += digits > 0 ? fmt::format("{:0>20}", text.substr(0, digits)) : std::string(1, text.front());
    text.remove_prefix(std::max<std::size_t>(digits, 1));
  }
  return result;
}

namespace {

/// Every metric that is worth a curve: the ablation's, the training loss, others of validation, and what a probe says of the whole model.
std::vector<std::string> metrics_of(Material const& material) {
  std::vector<std::string> metrics{material.metric};
  std::map<std::string, std::string> found;  // in their order
  for (auto const& arm : material.arms)
    for (auto const& [seed, history] : arm.histories)
      for (auto const& [name, series] : history) found.emplace(numbers_in_order(name), name);
  auto const add = [&](std::string const& name) {
    if (found.contains(numbers_in_order(name)) && std::ranges::find(metrics, name) == metrics.end()) metrics.push_back(name);
  };
  add("loss");
  for (auto const& [order, name] : found)
    if (auto const key = MetricKey::of(name); key.is_held_out() && key.name != "excess" && key.length < 0) add(name);
  if (material.single) add("grad_norm"), add("lr");
  for (auto const& [order, name] : found)
    if (name.starts_with("probe.curvature.") && !name.ends_with(".residual")) add(name);
  add("probe.attention.sink_rate");
  return metrics;
}

}  // namespace

std::vector<Figure> figures(Material const& material) {
  std::vector<Figure> result;
  auto const add = [&](std::optional<Figure> figure) {
    if (figure) result.push_back(std::move(*figure));
  };
  auto const grid = material.grid();
  if (grid) add(interaction(material, *grid));
  add(forest(material));
  auto const means = mapped(material.arms, [](ArmResult const& arm) { return arm.estimate ? arm.estimate->mean : std::nan(""); });
  for (auto const& key : material.varied) add(over_key(material, key, reach_of(means)));
  add(tuning_figure(material));
  constexpr std::size_t crowded = 6, unfolded = 5;  // lines in one frame; metrics
  bool const panels = grid && material.arms.size() > crowded;
  auto const metrics = metrics_of(material);
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    auto figure = panels ? curve_panels(material, *grid, metrics[i], false) : learning_curves(material, metrics[i]);
    if (figure) figure->further = i >= unfolded;
    add(std::move(figure));
    if (i == 0)
      add(panels && material.baseline_arm() != nullptr ? curve_panels(material, *grid, material.metric, true)
                                                       : difference_curves(material));
  }
  for (auto& figure : heat_maps(material)) result.push_back(std::move(figure));
  return result;
}

}  // namespace heed
