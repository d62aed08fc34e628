// The page of an ablation over the factor before q·k: the Hessian's largest eigenvalue over d_k, and beside the scores' variance.

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "experiments/ablation/scaling/scaled_arms.hpp"
#include "experiments/report/parts.hpp"
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

Panel over_widths(std::vector<ScaledArm> const& arms, bool last) {
  Panel panel{.title = last ? "sharpness at the end" : "sharpness before training"};
  for (auto const& arm : arms) {
    auto const values = mapped(values_of(*arm.arm, last), [](auto const& of_seed) { return of_seed.second; });
    if (values.empty() || !arm.starts_as_drawn()) continue;
    auto line = std::ranges::find(panel.layers, arm.name(), &FigureLayer::name);
    if (line == panel.layers.end())
      line = panel.layers.insert(line, {As::joined_intervals, {}, solid_look(panel.layers.size() + 1), arm.name()});
    line->points.push_back(point_of(arm.d_k, estimate(values)));
  }
  for (auto& line : panel.layers) std::ranges::sort(line.points, {}, &CurvePoint::x);
  panel.y = axis_over(panel.layers, true);
  return panel;
}

/// Sharpness over the mean variance of all heads' scores, means over seeds, a line for each arm along training, to its mark.
Panel beside_variance(std::vector<ScaledArm> const& arms) {
  Panel panel{.title = "along training"};
  auto const scales = scales_of(arms);
  for (auto const& arm : arms) {
    if (!arm.starts_as_drawn()) continue;
    std::map<double, std::pair<double, double>> sums;  // by step: of variances, how many
    for (auto const& [head, points] : head_series(*arm.arm, "attention.score_variance"))
      for (auto const& [step, value] : points) sums[step].first += value, sums[step].second += 1;
    std::vector<SeriesValues> seeds;
    for (auto const& [seed, history] : arm.arm->histories)
      if (auto const found = history.find(sharpness_metric); found != history.end()) seeds.push_back(found->second);
    auto const scale = static_cast<std::size_t>(std::ranges::find(scales, arm.scale) - scales.begin());
    FigureLayer line{As::line, {}, solid_look(scale + 1), arm.name()};
    for (auto const& point : curve_of(seeds)) {
      auto const found = sums.find(point.x);
      if (found == sums.end() || !(point.y > 0) || !(found->second.first > 0)) continue;
      line.points.push_back(CurvePoint::bare(found->second.first / found->second.second, point.y));
    }
    if (line.points.size() < 2) continue;
    FigureLayer const end{As::dots, {line.points.back()}, line.look, line.name};
    panel.layers.insert(panel.layers.end(), {std::move(line), end});
  }
  panel.y = axis_over(panel.layers, true);
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
  if (widths_of(arms).size() < 2 || first.layers.empty()) return {};
  StudyPart part{"Curvature of the loss", "", {}};
  for (auto const& scale : scales_of(arms)) {
    auto const before = exponent(arms, scale, false), after = exponent(arms, scale, true);
    if (before.empty() || after.empty()) continue;
    part.sentences.push_back(fmt::format("With {} sharpness goes as d_k to the power {} before training and {} at the end.",
                                         scale == "learned" ? "a learned scale" : scale_text(scale), before, after));
  }
  part.figures.push_back({.name = "sharpness",
                          .title = "Largest eigenvalue of the Hessian over d_k",
                          .caption = seeds_text(material) +
                                     ", of λ_max(∂²L/∂θ²) on the probes' batch; exponents are slopes in double logarithms, seed by seed.",
                          .panels = {std::move(first), std::move(last)},
                          .across = 2});
  share_x(part.figures.back(), "d_k", Ticks::twos);
  auto along = beside_variance(arms);
  if (along.layers.empty()) return {std::move(part)};
  part.figures.push_back({.name = "sharpness_variance",
                          .title = "Sharpness against the variance of the scores",
                          .caption = "Means over seeds and heads; each line is one d_k along training, to its mark.",
                          .panels = {std::move(along)}});
  share_x(part.figures.back(), "variance of a row's scores", Ticks::tens);
  return {std::move(part)};
}

Declared<AddedParts> const sharpness_parts{{2, sharpness_parts_of}};

}  // namespace

}  // namespace heed
