#include "experiments/report/figures.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/table.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/key.hpp"
#include "experiments/report/traces.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace {

/// How a metric falls or rises: all of training at the left, its second half at the right in a scale of its own.
std::optional<Figure> learning_curves(Material const& material, std::string const& metric) {
  auto traces = traces_of(material, metric, false);
  if (traces.empty()) return std::nullopt;
  bool const beside = metric == material.metric && !material.published.empty();
  if (beside) std::ranges::move(published_traces(material, traces), std::back_inserter(traces));
  double const last = end_of_training(traces), labels = label_width(traces);
  double const height = height_of(traces);
  auto const outlier = outliers_among(traces);
  Range whole, half = range_from(traces, last / 2, outlier);
  double const reach = reach_of(ends_of(traces));
  auto const include = [&](double value) {
    if (std::abs(value) <= reach) whole.include(value);
  };
  for (auto const& trace : traces) {
    include(trace.curve.front().mean);
    for (auto const& point : trace.curve)
      if (point.step >= last / 10) include(point.low), include(point.high);
  }
  whole.widen(0.04);
  if (!(half.low < half.high) || !(whole.low < whole.high)) return std::nullopt;

  double const top = height - 0.12, bottom = 0.46, right = Figure::width - labels;
  double const left = y_axis_width(axis_name(material, metric), whole), gap = y_axis_width("", half);
  double const panel = (right - left - gap) / 2;
  Figure figure{.name = figure_name(metric), .title = axis_name(material, metric), .caption = "", .height = height, .commands = ""};
  figure.commands = blocks(traces) + plot_style + "set multiplot\n" + margins(left, left + panel, bottom, top, height) + x_steps(0, last) +
                    y_axis(figure.title, whole) + plot(traces, whole) + margins(right - panel, right, bottom, top, height) +
                    x_steps(last / 2, last) + y_axis("", half) + direct_labels(traces, half, top - bottom) + plot(traces, half) +
                    "unset multiplot\n";
  figure.caption = fmt::format("{}{}. Left: all of training; right: its second half on its own scale{}.", seeds_text(material),
                               beside ? "; grey: published values" : "",
                               std::ranges::any_of(traces, outlier, &Trace::end) ? ", without arms far from the others (arrows)" : "");
  return figure;
}

/// The paired difference to the baseline along training.
std::optional<Figure> difference_curves(Material const& material) {
  if (material.baseline_arm() == nullptr) return std::nullopt;
  auto const traces = traces_of(material, material.metric, true);
  if (traces.empty()) return std::nullopt;
  double const last = end_of_training(traces);
  double const height = height_of(traces, 2.4);
  auto const outlier = outliers_among(traces);
  Range range = range_from(traces, last / 4, outlier);
  range.include(0);
  if (!(range.low < range.high)) return std::nullopt;
  Figure figure{.name = "difference_curves",
                .title = "Difference to " + material.baseline + " along training",
                .caption = "",
                .height = height,
                .commands = ""};
  figure.commands = "set arrow 1 from graph 0, first 0 to graph 1, first 0 nohead lc rgb 'black' lw 0.8\n" +
                    frame_of(traces, range, "difference in " + axis_name(material, material.metric), height) + x_steps(0, last) +
                    plot(traces, range);
  figure.caption = fmt::format("Arm minus {} with the same seed and data; mean and 95 % interval over the seeds. {} is better.",
                               material.baseline, material.better == "lower" ? "Below 0" : "Above 0");
  return figure;
}

std::optional<double> as_number(std::string const& text) {
  auto const value = parsed_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// The metric over a varied key with three numbers or more, a line for each choice of the other keys.
std::vector<Figure> over_keys(Material const& material) {
  std::vector<Figure> result;
  std::vector<double> means;
  for (auto const& arm : material.arms) means.push_back(arm.estimate ? arm.estimate->mean : std::nan(""));
  double const reach = reach_of(means);
  for (auto const& key : material.varied) {
    std::vector<Trace> traces;
    std::set<double> places;
    std::string left_out;
    for (auto const& arm : material.arms) {
      std::optional<double> place;
      std::string rest;
      for (auto const& [name, value] : arm.keys) {
        if (name == key)
          place = as_number(value);
        else
          rest += (rest.empty() ? "" : ", ") + value;
      }
      if (!place || !arm.estimate) continue;
      double const mean = arm.estimate->mean;
      if (!std::isfinite(mean) || std::abs(mean) > reach) {
        left_out += (left_out.empty() ? "" : ", ") + short_name(arm);
        continue;
      }
      places.insert(*place);
      auto line = std::ranges::find(traces, rest, &Trace::name);
      if (line == traces.end())
        line = traces.insert(traces.end(), {rest, {line_colour(traces.size() % 7), 1 + (traces.size() + traces.size() / 7) % 5}, {}});
      auto const interval = arm.estimate->interval_or_mean();
      line->curve.push_back({*place, mean, interval.low, interval.high});
    }
    if (places.size() < 3) continue;
    Range range;
    for (auto& trace : traces) {
      std::ranges::sort(trace.curve, {}, &CurvePoint::step);
      trace.name = cut(trace.name, 26);
      for (auto const& point : trace.curve) range.include(point.low), range.include(point.high);
    }
    range.widen(0.05);
    if (range.is_empty()) continue;
    bool const powers = *places.begin() > 0 && *places.rbegin() >= 8 * *places.begin();
    std::vector<std::string> tics, plots;
    for (double const place : places) tics.push_back(fmt::format("{:g}", place));
    for (std::size_t i = 0; i < traces.size(); ++i)
      plots.push_back(fmt::format("$c{0} using 1:2:3:4 with yerrorlines pt {3} ps 0.5 lw 1.3 dt {2} lc rgb '{1}'", i,
                                  traces[i].style.colour, traces[i].style.dash, 5 + 2 * (i % 6)));
    Figure figure{.name = figure_name("over_" + key),
                  .title = axis_name(material, material.metric) + " over " + key,
                  .caption = "",
                  .height = height_of(traces),
                  .commands = ""};
    figure.commands = frame_of(traces, range, axis_name(material, material.metric), figure.height) + (powers ? "set logscale x 2\n" : "") +
                      fmt::format("set xtics ({})\n", fmt::join(tics, ", ")) +
                      (powers ? fmt::format("set xrange [{}:{}]\n", *places.begin() / 1.2, *places.rbegin() * 1.2)
                              : "set offsets graph 0.03, graph 0.03, 0, 0\n") +
                      fmt::format("set xlabel {}\n", gnuplot_text(key)) + fmt::format("plot {}\n", fmt::join(plots, ", \\\n  "));
    figure.caption =
        fmt::format("{}.{}", seeds_text(material), left_out.empty() ? "" : " Left out because they diverged: " + left_out + ".");
    result.push_back(std::move(figure));
  }
  return result;
}

/// Texts in which numbers count as numbers: layer2 before layer10.
bool natural_less(std::string const& a, std::string const& b) {
  auto const is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    auto const number = [&](std::string const& text, std::size_t& at) {
      std::size_t const begin = text.find_first_not_of('0', at);
      while (at < text.size() && is_digit(text[at])) ++at;
      return text.substr(std::min(begin, at), at - std::min(begin, at));
    };
    auto const x = number(a, i), y = number(b, j);
    if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
  }
  return a.size() - i < b.size() - j;
}

/// Every metric that is worth a curve: the ablation's own, the training loss, other validation metrics, and what a probe says of the whole
/// model. What comes beyond the first few is folded.
std::vector<std::string> metrics_of(Material const& material) {
  std::vector<std::string> metrics{material.metric};
  std::set<std::string, decltype(&natural_less)> found(&natural_less);
  for (auto const& arm : material.arms)
    for (auto const& [seed, history] : arm.histories)
      for (auto const& [name, series] : history) found.insert(name);
  auto const add = [&](std::string const& name) {
    if (found.contains(name) && std::ranges::find(metrics, name) == metrics.end()) metrics.push_back(name);
  };
  add("loss");
  for (auto const& name : found)
    if (auto const key = MetricKey::of(name); key.is_held_out() && key.name != "excess" && key.length < 0) add(name);
  if (material.single) add("grad_norm"), add("lr");
  for (auto const& name : found)
    if (name.starts_with("probe.curvature.") && !name.ends_with(".residual")) add(name);
  add("probe.attention.sink_rate");
  return metrics;
}
constexpr std::size_t unfolded = 5;

}  // namespace

std::vector<Figure> figures(Material const& material) {
  std::vector<Figure> result;
  auto const add = [&](std::optional<Figure> figure) {
    if (figure) result.push_back(std::move(*figure));
  };
  auto const grid = material.grid();
  if (grid) add(interaction(material, *grid));
  add(forest(material));
  for (auto& figure : over_keys(material)) result.push_back(std::move(figure));
  add(tuning_figure(material));
  constexpr std::size_t crowded = 6;  // lines in one frame
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
