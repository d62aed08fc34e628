// What the page of an ablation over the factor before q·k shows of the Hessian's largest eigenvalue: over d_k at the start and at the end,
// and beside the variance of the scores along training.

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "experiments/ablation/scaling/scaled_arms.hpp"
#include "experiments/report/curve.hpp"
#include "experiments/report/parts.hpp"
#include "experiments/report/series.hpp"
#include "experiments/report/traces.hpp"

namespace heed {

namespace {

constexpr char const* sharpness_metric = "probe.curvature.sharpness";

/// By seed, its value at the first or the last step that has one; nothing that is not above 0 counts.
BySeed values_of(ArmResult const& arm, bool last) {
  BySeed values;
  for (auto const& [seed, history] : arm.histories) {
    auto const found = history.find(sharpness_metric);
    if (found == history.end() || found->second.empty()) continue;
    double const value = (last ? found->second.back() : found->second.front()).second;
    if (std::isfinite(value) && value > 0) values.emplace(seed, value);
  }
  return values;
}

SeriesPanel over_widths(std::vector<ScaledArm> const& arms, bool last) {
  SeriesPanel panel{.title = last ? "sharpness at the end" : "sharpness before training", .series = {}, .log_y = true};
  for (auto const& arm : arms) {
    std::vector<double> values;
    for (auto const& [seed, value] : values_of(*arm.arm, last)) values.push_back(value);
    if (values.empty() || !arm.starts_as_drawn()) continue;
    auto series = std::ranges::find(panel.series, arm.name(), &Series::name);
    if (series == panel.series.end()) series = panel.series.insert(series, {arm.name(), panel.series.size() + 1, {}});
    series->points.push_back(joined_point(arm.d_k, estimate(values)));
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
    std::vector<std::vector<std::pair<Index, double>>> seeds;
    for (auto const& [seed, history] : arm.arm->histories)
      if (auto const found = history.find(sharpness_metric); found != history.end()) seeds.push_back(found->second);
    Series series{arm.name(), static_cast<std::size_t>(std::ranges::find(scales, arm.scale) - scales.begin()) + 1, {}};
    for (auto const& point : curve_of(seeds)) {
      auto const found = sums.find(point.x);
      if (found == sums.end() || !(point.y > 0) || !(found->second.first > 0)) continue;
      series.points.push_back({found->second.first / found->second.second, {}, 0, 0, point.y});
    }
    if (series.points.size() < 2) continue;
    auto& end = series.points.back();
    end.y = end.low = end.high = *end.theory;
    panel.series.push_back(std::move(series));
  }
  return panel;
}

/// The exponent of sharpness over d_k in each seed, as a slope in double logarithms: "1.2 [0.9, 1.5]".
std::string exponent(std::vector<ScaledArm> const& arms, std::string const& scale, bool last) {
  std::map<Index, std::pair<std::vector<double>, std::vector<double>>> seeds;  // ln d_k, ln λ
  for (auto const& arm : arms) {
    if (arm.scale != scale || !arm.starts_as_drawn()) continue;
    for (auto const& [seed, value] : values_of(*arm.arm, last)) {
      seeds[seed].first.push_back(std::log(arm.d_k));
      seeds[seed].second.push_back(std::log(value));
    }
  }
  std::vector<double> slopes;
  for (auto const& [seed, points] : seeds)
    if (points.first.size() > 1) slopes.push_back(fit_line(points.first, points.second).slope);
  if (slopes.empty()) return "";
  auto const found = estimate(slopes);
  return found.interval ? fmt::format("{:.2f} [{:.2f}, {:.2f}]", found.mean, found.interval->low, found.interval->high)
                        : short_number(found.mean, 2);
}

std::vector<StudyPart> sharpness_parts_of(Material const& material) {
  auto const arms = scaled_arms(material);
  auto first = over_widths(arms, false), last = over_widths(arms, true);
  if (widths_of(arms).size() < 2 || first.series.empty()) return {};
  StudyPart part{"Curvature of the loss", "", {}};
  for (auto const& scale : scales_of(arms)) {
    auto const before = exponent(arms, scale, false), after = exponent(arms, scale, true);
    if (before.empty() || after.empty()) continue;
    part.sentences.push_back(fmt::format("With {} sharpness goes as d_k to the power {} before training and {} at the end.",
                                         scale == "learned" ? "a learned scale" : scale_text(scale), before, after));
  }
  auto const by_seeds = seeds_text(material);
  part.figures.push_back(
      figure_of({.name = "sharpness",
                 .title = "Largest eigenvalue of the Hessian over d_k",
                 .caption = by_seeds + ", of λ_max(∂²L/∂θ²) on the probes' batch; exponents are slopes in double logarithms, seed by seed.",
                 .x = "d_k",
                 .panels = {std::move(first), std::move(last)}}));
  auto along = beside_variance(arms);
  if (!along.series.empty())
    part.figures.push_back(figure_of({.name = "sharpness_variance",
                                      .title = "Sharpness against the variance of the scores",
                                      .caption = "Means over seeds and heads; each line is one d_k along training, to its mark.",
                                      .x = "variance of a row's scores",
                                      .ten = true,
                                      .across = 1,
                                      .panels = {std::move(along)}}));
  return {std::move(part)};
}

Declared<AddedParts> const sharpness_parts{{2, sharpness_parts_of}};

}  // namespace

}  // namespace heed
