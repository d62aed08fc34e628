#include "experiments/report/figures.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/table.hpp"
#include "experiments/metric/info.hpp"
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
  double const last = end_of_training(traces);
  auto const outlier = outliers_among(traces);
  Range whole, half = range_from(traces, last / 2, outlier);
  double const reach = reach_of(ends_of(traces));
  auto const include = [&](double value) {
    if (std::abs(value) <= reach) whole.include(value);
  };
  for (auto const& trace : traces) {
    include(trace.curve.front().y);
    for (auto const& point : trace.curve)
      if (point.x >= last / 10) include(point.low), include(point.high);
  }
  whole.widen(0.04);
  if (!(half.low < half.high) || !(whole.low < whole.high)) return std::nullopt;

  auto figure = labelled_figure(traces, half, "");
  figure.name = figure_name(metric);
  figure.title = axis_name(material, metric);
  figure.across = 2;
  figure.panels.front().x = steps_axis(last / 2, last);
  figure.panels.front().layers = layers_of(traces, half);
  figure.panels.insert(figure.panels.begin(),
                       Panel{.x = steps_axis(0, last), .y = axis_over(whole, figure.title), .layers = layers_of(traces, whole)});
  figure.caption = fmt::format("{}{}. First all of training, then its second half on its own scale{}.", seeds_text(material),
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
  auto const outlier = outliers_among(traces);
  Range range = range_from(traces, last / 4, outlier);
  range.include(0);
  if (!(range.low < range.high)) return std::nullopt;
  auto figure = labelled_figure(traces, range, "difference in " + axis_name(material, material.metric), 1.8);
  figure.name = "difference_curves";
  figure.title = "Difference to " + material.baseline + " along training";
  auto& panel = figure.panels.front();
  panel.x = steps_axis(0, last);
  panel.layers = layers_of(traces, range);
  panel.guides.push_back({.at = 0});
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
        line = traces.insert(traces.end(),
                             {rest, {.colour = line_colour(traces.size()), .dash = 1 + (traces.size() + traces.size() / 7) % 5}, {}});
      auto const interval = arm.estimate->interval_or_mean();
      line->curve.push_back({*place, mean, interval.low, interval.high});
    }
    if (places.size() < 3) continue;
    Range range;
    for (auto& trace : traces) {
      std::ranges::sort(trace.curve, {}, &CurvePoint::x);
      for (auto const& point : trace.curve) range.include(point);
    }
    range.widen(0.05);
    if (range.is_empty()) continue;
    auto figure = labelled_figure(traces, range, axis_name(material, material.metric));
    figure.name = figure_name("over_" + key);
    figure.title = axis_name(material, material.metric) + " over " + key;
    figure.panels.front().x = axis_of_values(places, key);
    figure.panels.front().layers = joined_layers_of(traces);
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
    if (name.starts_with("validation.") && !name.ends_with("excess") && !length_of_name(name, "validation.loss") &&
        !length_of_name(name, "validation.ema.loss"))
      add(name);
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
