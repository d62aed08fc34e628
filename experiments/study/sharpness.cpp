// What the page of an ablation over the factor before q·k shows of the Hessian's largest eigenvalue: over d_k at the start and at the end,
// and beside the variance of the scores along training.

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "experiments/report/added_parts.hpp"
#include "experiments/report/curve.hpp"
#include "experiments/report/series.hpp"
#include "experiments/report/traces.hpp"
#include "experiments/study/scaled_arms.hpp"

namespace heed {

namespace {

constexpr char const* metric = "probe.curvature.sharpness";

/// The values of all seeds at the first or the last step that has one; nothing that is not above 0 counts.
std::vector<double> values_of(ReportedArm const& arm, bool last) {
  std::vector<double> values;
  for (auto const& [seed, history] : arm.histories) {
    auto const found = history.find(metric);
    if (found == history.end() || found->second.empty()) continue;
    double const value = (last ? found->second.back() : found->second.front()).second;
    if (std::isfinite(value) && value > 0) values.push_back(value);
  }
  return values;
}

SeriesPanel over_widths(std::vector<ScaledArm> const& arms, bool last) {
  SeriesPanel panel{.title = last ? "sharpness at the end" : "sharpness before training", .series = {}, .log_y = true};
  for (auto const& arm : arms) {
    auto const values = arm.starts_as_drawn() ? values_of(*arm.arm, last) : std::vector<double>();
    if (values.empty()) continue;
    auto series = std::ranges::find(panel.series, arm.said(), &Series::name);
    if (series == panel.series.end()) series = panel.series.insert(series, {arm.said(), panel.series.size() + 1, {}});
    auto const found = estimate(values);
    auto const interval = found.interval.value_or(Interval{found.mean, found.mean});
    series->points.push_back({arm.d_k, found.mean, interval.low, interval.high, found.mean});
  }
  for (auto& series : panel.series) std::ranges::sort(series.points, {}, &SeriesPoint::x);
  return panel;
}

/// Sharpness over the mean variance of all heads' scores, means over seeds, a line for each arm along training.
SeriesPanel beside_variance(std::vector<ScaledArm> const& arms) {
  SeriesPanel panel{.title = "along training", .series = {}, .log_y = true};
  auto const scales = scales_of(arms);
  for (auto const& arm : arms) {
    if (!arm.starts_as_drawn()) continue;
    std::map<double, std::pair<double, double>> sums;  // by step: of variances, how many
    for (auto const& head : head_series(*arm.arm, "attention.score_variance"))
      for (auto const& [step, value] : head.points) sums[step].first += value, sums[step].second += 1;
    std::vector<std::vector<std::pair<std::int64_t, double>>> seeds;
    for (auto const& [seed, history] : arm.arm->histories)
      if (auto const found = history.find(metric); found != history.end()) seeds.push_back(found->second);
    Series series{arm.said(), static_cast<std::size_t>(std::ranges::find(scales, arm.scale) - scales.begin()) + 1, {}};
    for (auto const& point : curve_of(seeds)) {
      auto const found = sums.find(point.step);
      if (found == sums.end() || !(point.mean > 0) || !(found->second.first > 0)) continue;
      series.points.push_back({found->second.first / found->second.second, {}, 0, 0, point.mean});
    }
    if (series.points.size() < 2) continue;
    auto& end = series.points.back();
    end.y = end.low = end.high = *end.theory;
    panel.series.push_back(std::move(series));
  }
  return panel;
}

/// "goes as d_k to the power 0.9 [0.8, 1.0]" of a scale, before training.
std::string said(Series const& series, char const* when) {
  std::vector<double> x, y;
  for (auto const& point : series.points) x.push_back(std::log(point.x)), y.push_back(std::log(*point.y));
  if (x.size() < 3) return "";
  auto const line = fit_line(x, y);
  auto const interval = line.interval ? fmt::format(" [{:.2f}, {:.2f}]", line.interval->low, line.interval->high) : "";
  return fmt::format("{}: {} sharpness goes as d_k to the power {:.2f}{}, from {:.3g} at d_k {:g} to {:.3g} at {:g}.", series.name, when,
                     line.slope, interval, *series.points.front().y, series.points.front().x, *series.points.back().y,
                     series.points.back().x);
}

std::vector<StudyPart> parts(Material const& material) {
  auto const arms = scaled_arms(material);
  auto first = over_widths(arms, false), last = over_widths(arms, true);
  if (widths_of(arms).size() < 2 || first.series.empty()) return {};
  StudyPart part{"How curved the loss is", "", {}};
  for (auto const& series : first.series)
    if (auto sentence = said(series, "before training"); !sentence.empty()) part.sentences.push_back(std::move(sentence));
  for (auto const& series : last.series)
    if (auto sentence = said(series, "at the end"); !sentence.empty()) part.sentences.push_back(std::move(sentence));
  auto const by_seeds = seeds_said(material);
  part.figures.push_back(
      figure_of({.name = "sharpness",
                 .title = "Largest eigenvalue of the Hessian over d_k",
                 .caption = by_seeds + ", of λ_max(∂²L/∂θ²) on the probes' batch; exponents are slopes in double logarithms.",
                 .x = "d_k",
                 .panels = {std::move(first), std::move(last)}}));
  auto along = beside_variance(arms);
  if (!along.series.empty())
    part.figures.push_back(figure_of({.name = "sharpness_variance",
                                      .title = "Sharpness beside the variance of the scores",
                                      .caption = "Means over seeds and heads; each line is one d_k along training, to its mark.",
                                      .x = "variance of a row's scores",
                                      .ten = true,
                                      .across = 1,
                                      .panels = {std::move(along)}}));
  return {std::move(part)};
}

bool const registered = register_added_parts(parts);

}  // namespace

}  // namespace heed
