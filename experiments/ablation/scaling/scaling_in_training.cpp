// What the page of an ablation over the factor before q·k shows beside its comparison: each trained head on the curve of softmax over
// random scores, which exponent trains best at which width, and whether it is the factor or the scores' variance at the start that matters.

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/ablation/results.hpp"
#include "experiments/ablation/scaling/quadrature.hpp"
#include "experiments/ablation/scaling/scaled_arms.hpp"
#include "experiments/report/parts.hpp"
#include "experiments/report/traces.hpp"

namespace heed {

namespace {

// ---------------------------------------------------------------- heads on the theory's curve

/// E tr J of softmax over independent normal scores, by their variance: of rows that see 1 … T keys, or all of them T.
struct Theory {
  double context;
  bool causal;
  double operator()(double variance) const {
    std::vector<Index> keys;
    for (Index n = causal ? 2 : static_cast<Index>(context); n <= static_cast<Index>(context); ++n) keys.push_back(n);
    double sum = 0;
    for (auto const& e : softmax_of_normal_logits(variance, keys)) sum += e.trace;
    return sum / (causal ? context : 1);
  }
};

/// Heads along training, from score variance to mean of tr J: a panel for each scale and start, a line for each width.
std::vector<Panel> heads_of(std::vector<ScaledArm> const& arms) {
  auto const widths = widths_of(arms);
  std::vector<Panel> panels;
  for (auto const& arm : arms) {
    auto const variances = head_series(*arm.arm, "attention.score_variance"), traces = head_series(*arm.arm, "gradients.jacobian_trace");
    auto const width = static_cast<std::size_t>(std::ranges::find(widths, arm.d_k) - widths.begin());
    for (auto const& [head, points] : variances) {
      auto const trace = traces.find(head);
      if (trace == traces.end()) continue;
      auto const& at = trace->second;
      FigureLayer path{As::line, {}, solid_look(width + 1), fmt::format("d_k {:g}", arm.d_k)};
      for (auto const& [step, value] : points)
        if (auto const found = at.find(step); found != at.end() && value > 0) path.points.push_back(CurvePoint::bare(value, found->second));
      if (path.points.size() < 2) continue;
      auto panel = std::ranges::find(panels, arm.name_with_start(), &Panel::title);
      if (panel == panels.end()) panel = panels.insert(panel, {.title = arm.name_with_start()});
      panel->layers.push_back(std::move(path));
    }
  }
  return panels;
}

/// How far heads lie from the curve, and above it, on average, at the first or the last point of their paths.
std::pair<double, double> distance(std::vector<FigureLayer> const& paths, Theory const& theory, bool last) {
  double far = 0, above = 0;
  for (auto const& path : paths) {
    auto const& point = last ? path.points.back() : path.points.front();
    double const by = (point.y - theory(point.x)) / static_cast<double>(paths.size());
    far += std::abs(by), above += by;
  }
  return {far, above};
}

std::optional<StudyPart> heads_on_curve(std::vector<ScaledArm> const& arms) {
  Figure figure{.name = "heads", .title = "Each head along training, on the curve of random scores", .panels = heads_of(arms), .across = 2};
  if (figure.panels.empty()) return std::nullopt;
  std::vector<FigureLayer> paths;
  for (auto const& panel : figure.panels) paths.insert(paths.end(), panel.layers.begin(), panel.layers.end());
  Range variances, traces;
  for (auto const& path : paths)
    for (auto const& point : path.points) variances.include(point.x), traces.include(point.y);
  variances.low = std::max(variances.low, 1e-9 * variances.high);
  // Even weights let the most through: what is above it for rows of 1 … T keys sees all T.
  Theory theory{arms.front().context, true};
  theory.causal = traces.high < theory(1e-9) * 1.02;
  FigureLayer curve{As::line, {}, solid_look(0), "random scores"};
  for (double x = std::floor(2 * std::log10(variances.low)) / 2; x <= std::log10(variances.high) + 0.5; x += 0.1)
    curve.points.push_back(CurvePoint::bare(std::pow(10, x), theory(std::pow(10, x))));
  for (auto& panel : figure.panels) {
    auto const ends = mapped(panel.layers, [](FigureLayer const& path) {
      return FigureLayer{As::dots, {path.points.back()}, path.look, path.name};
    });
    panel.layers.insert(panel.layers.begin(), curve);
    panel.layers.insert(panel.layers.end(), ends.begin(), ends.end());
    panel.y = axis_over(Range{0, std::max(traces.high, theory(1e-9)) * 1.06}, "", 4);
  }
  share_x(figure, "variance of a row's scores", Ticks::tens);
  double const before = distance(paths, theory, false).first;
  auto const [after, above] = distance(paths, theory, true);
  figure.caption = fmt::format(
      "Mean of tr J = 1 − Σp² of each layer's heads over the variance of their scores, means over seeds; lines: along training, to the "
      "marks. "
      "Black: the expectation for independent normal scores of that variance, {}.",
      theory.causal ? fmt::format("mean over rows that see 1 … {:g} keys", theory.context) : fmt::format("{:g} keys", theory.context));
  StudyPart part{"Trained heads compared with random scores", "", {figure}};
  part.sentences.push_back(
      fmt::format("At the first probe tr J of a head is {:.3f} from the curve of random scores on average, at the last {:.3f}, {} it: {}.",
                  before, after, above > 0 ? "mostly above" : "mostly below",
                  after < 2 * before ? "the variance of its scores says how saturated a trained head is"
                  : above > 0        ? "trained heads are less saturated than random scores of their variance"
                                     : "trained heads are more saturated than random scores of their variance"));
  return part;
}

// ---------------------------------------------------------------- which exponent trains best

/// Where the parabola through the best of (x, y) and its neighbours is lowest; the best itself at an end.
double lowest_of(std::vector<std::pair<double, double>> const& points) {
  auto const best = static_cast<std::size_t>(std::ranges::min_element(points, {}, &std::pair<double, double>::second) - points.begin());
  if (best == 0 || best + 1 == points.size()) return points[best].first;
  auto const [x0, y0] = points[best - 1];
  auto const [x1, y1] = points[best];
  auto const [x2, y2] = points[best + 1];
  double const a = (x1 - x0) * (y1 - y2), b = (x1 - x2) * (y1 - y0);
  return a == b ? x1 : x1 - ((x1 - x0) * a - (x1 - x2) * b) / (2 * (a - b));
}

/// α and arm for all arms of one width, in the order of α.
std::vector<std::pair<double, ArmResult const*>> by_power(std::vector<ScaledArm> const& arms, double width) {
  std::map<double, ArmResult const*> found;
  for (auto const& arm : arms)
    if (arm.d_k == width && arm.starts_as_drawn() && arm.power() && arm.arm->estimate) found.emplace(*arm.power(), arm.arm);
  return {found.begin(), found.end()};
}

std::string with_interval(Estimate const& found) {
  return found.interval ? fmt::format("{:.3f} ± {:.3f}", found.mean, found.interval->half_width()) : fmt::format("{:.3f}", found.mean);
}

/// By how much an arm is worse than another in each seed in which both have a finite value.
std::vector<double> worse_by(Material const& material, ArmResult const& arm, ArmResult const& other) {
  auto found = paired_differences(arm.values, other.values);
  std::erase_if(found, [](double by) { return !std::isfinite(by); });
  if (material.better == "higher")
    for (double& by : found) by = -by;
  return found;
}

bool is_clear(Estimate const& difference) { return difference.interval && (difference.interval->low > 0 || difference.interval->high < 0); }

/// Where the parabolas of the seeds are lowest, beside the best of the exponents that were tried.
std::string where_lowest(Material const& material, std::vector<std::pair<double, ArmResult const*>> const& powers, double best) {
  double const sign = material.better == "higher" ? -1 : 1;
  std::map<Index, std::vector<std::pair<double, double>>> seeds;
  for (auto const& [power, arm] : powers)
    for (auto const& [seed, value] : arm->values)
      if (std::isfinite(value)) seeds[seed].emplace_back(power, sign * value);
  std::vector<double> lowest;
  for (auto const& [seed, points] : seeds)
    if (points.size() == powers.size()) lowest.push_back(lowest_of(points));
  if (lowest.empty()) return "";
  if (best == powers.front().first || best == powers.back().first) {
    auto const there = std::ranges::count(lowest, best);
    return fmt::format(", in {} of {} seeds; it is the {} value that was tried, and the optimum may lie beyond", there, lowest.size(),
                       best == powers.front().first ? "smallest" : "largest");
  }
  auto const [count, mean, deviation, interval, method] = estimate(lowest);
  auto const within = interval ? fmt::format(" [{:.2f}, {:.2f}]", interval->low, interval->high) : "";
  return fmt::format(" (parabolas seed by seed are lowest at {:.2f}{})", mean, within);
}

std::string verdict(Material const& material, double width, std::vector<std::pair<double, ArmResult const*>> const& powers) {
  double const sign = material.better == "higher" ? -1 : 1;
  auto const best = std::ranges::min_element(powers, {}, [&](auto const& each) { return sign * each.second->estimate->mean; });
  auto const unit = material.unit.empty() ? "" : " " + material.unit;
  std::vector<std::string> worse, alike;
  for (auto const& [power, arm] : powers) {
    auto const by = worse_by(material, *arm, *best->second);
    if (arm == best->second || by.empty()) continue;
    auto const found = estimate(by);
    (is_clear(found) ? worse : alike).push_back(fmt::format("{:g} by {}{}", power, with_interval(found), unit));
  }
  std::string sentence =
      fmt::format("At d_k {:g}, α = {:g} trains best{}", width, best->first, where_lowest(material, powers, best->first));
  if (!worse.empty()) sentence += fmt::format("; worse are {}", fmt::join(worse, ", "));
  if (!alike.empty()) sentence += fmt::format("; not distinguishable from it: {}", fmt::join(alike, ", "));
  return sentence + ".";
}

std::optional<StudyPart> exponents(Material const& material, std::vector<ScaledArm> const& arms) {
  Panel panel{.title = axis_name(material, material.metric)};
  StudyPart part{"Which exponent trains best", "", {}};
  for (double const width : widths_of(arms)) {
    auto const powers = by_power(arms, width);
    if (powers.size() < 3) continue;
    auto& line = panel.layers.emplace_back(
        FigureLayer{As::joined_intervals, {}, solid_look(panel.layers.size() + 1), fmt::format("d_k {:g}", width)});
    for (auto const& [power, arm] : powers) line.points.push_back(point_of(power, *arm->estimate));
    part.sentences.push_back(verdict(material, width, powers));
  }
  if (part.sentences.empty()) return std::nullopt;
  panel.y = axis_over(panel.layers);
  Figure figure{.name = "exponents",
                .title = panel.title + " over the exponent α of the factor d_k^−α",
                .caption = fmt::format("{}; {} is better. 0: no scale, 0.5: 1/√d_k, 1: 1/d_k.", seeds_text(material), material.better),
                .panels = {std::move(panel)}};
  share_x(figure, "α", Ticks::even);
  part.figures.push_back(std::move(figure));
  return part;
}

// ---------------------------------------------------------------- the factor, or the variance at the start

/// Two factors at one width, each with the usual start and with that whose scores start with the other's variance.
struct Exchange {
  double width;
  ScaledArm const *large, *small;  ///< the larger factor and the smaller one
  ScaledArm const *large_starts_small, *small_starts_large;
};

std::vector<Exchange> exchanges(std::vector<ScaledArm> const& arms) {
  std::vector<Exchange> found;
  auto const usual = [&](ScaledArm const& start) {
    // spread² · s of one is s of the other
    return std::ranges::find_if(arms, [&](ScaledArm const& arm) {
      return arm.d_k == start.d_k && arm.starts_as_drawn() && arm.factor &&
             std::abs(*arm.factor / (*start.factor * start.spread * start.spread) - 1) < 0.01;
    });
  };
  for (auto const& down : arms) {
    if (!down.factor || down.spread >= 1) continue;
    for (auto const& up : arms) {
      if (!up.factor || up.spread <= 1 || up.d_k != down.d_k) continue;
      auto const small = usual(down), large = usual(up);
      if (small == arms.end() || large == arms.end() || large->factor != down.factor || small->factor != up.factor) continue;
      found.push_back({down.d_k, &*large, &*small, &down, &up});
    }
  }
  std::ranges::sort(found, {}, &Exchange::width);
  return found;
}

std::string verdict(Material const& material, Exchange const& x) {
  auto const usual = worse_by(material, *x.large->arm, *x.small->arm),
             cured = worse_by(material, *x.large->arm, *x.large_starts_small->arm),
             spoilt = worse_by(material, *x.small_starts_large->arm, *x.small->arm);
  if (usual.size() < 2 || cured.size() < 2 || spoilt.size() < 2) return "";
  auto const gap = estimate(usual), gained = estimate(cured), lost = estimate(spoilt);
  auto const unit = material.unit.empty() ? "" : " " + material.unit;
  auto const large = x.large->name(), small = x.small->name();
  auto const sentence =
      fmt::format("At d_k {:g} the arm with {} is {}{} worse than that with {}", x.width, large, with_interval(gap), unit, small);
  if (!is_clear(gap)) return sentence + ", which may be chance.";
  double const first = gained.mean / gap.mean, second = lost.mean / gap.mean;
  return sentence + fmt::format(". Starting with the variance of the other, {} gains {} ({:.0f} % of that) and {} loses {} ({:.0f} %): {}.",
                                large, with_interval(gained), 100 * first, small, with_interval(lost), 100 * second,
                                first > 0.5 && second > 0.5   ? "it is mostly the scores' variance at the start"
                                : first < 0.5 && second < 0.5 ? "it is mostly the factor itself"
                                                              : "the start matters, and so does the factor");
}

std::optional<StudyPart> mechanism(Material const& material, std::vector<ScaledArm> const& arms) {
  auto const all = exchanges(arms);
  if (all.empty()) return std::nullopt;
  StudyPart part{"The factor, or the variance that scores start with", "", {}};
  Figure figure{
      .name = "mechanism",
      .title = "Each factor with its own start and with the other's",
      .caption = fmt::format("{}; {} is better. Right: of all layers and heads at the first probe. Initial weights of queries and keys "
                             "times d_k^±¼ give the scores of one factor the variance that they have with the other.",
                             seeds_text(material), material.better),
      .panels = {{.title = axis_name(material, material.metric)}, {.title = "score variance at the start"}},
      .across = 2};
  auto const add = [&](std::string const& name, std::size_t look, ScaledArm const* Exchange::*which) {
    FigureLayer values{As::joined_intervals, {}, solid_look(look), name}, variances = values;
    for (auto const& x : all) {
      auto const& arm = *(x.*which)->arm;
      if (!arm.has_finite_mean()) continue;
      values.points.push_back(point_of(x.width, *arm.estimate));
      double sum = 0;
      auto const heads = head_series(arm, "attention.score_variance");
      for (auto const& [head, points] : heads) sum += points.begin()->second / static_cast<double>(heads.size());
      if (sum > 0) variances.points.push_back(CurvePoint::bare(x.width, sum));
    }
    figure.panels[0].layers.push_back(std::move(values));
    figure.panels[1].layers.push_back(std::move(variances));
  };
  auto const large = all.front().large->name(), small = all.front().small->name();
  add(large, 1, &Exchange::large);
  add(large + ", smaller start", 2, &Exchange::large_starts_small);
  add(small, 3, &Exchange::small);
  add(small + ", larger start", 4, &Exchange::small_starts_large);
  for (auto& panel : figure.panels) panel.y = axis_over(panel.layers, &panel != &figure.panels.front());
  if (figure.panels[1].layers.front().points.empty()) figure.panels.pop_back();
  share_x(figure, "d_k", Ticks::twos);
  part.figures.push_back(std::move(figure));
  for (auto const& x : all)
    if (auto sentence = verdict(material, x); !sentence.empty()) part.sentences.push_back(std::move(sentence));
  return part;
}

std::vector<StudyPart> scaling_in_training_parts_of(Material const& material) {
  auto const arms = scaled_arms(material);
  std::vector<StudyPart> found;
  if (arms.empty()) return found;
  for (auto& part : {exponents(material, arms), mechanism(material, arms), heads_on_curve(arms)})
    if (part) found.push_back(*part);
  return found;
}

Declared<AddedParts> const scaling_in_training_parts{{1, scaling_in_training_parts_of}};

}  // namespace

}  // namespace heed
