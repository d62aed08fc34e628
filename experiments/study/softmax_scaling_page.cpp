// The page of softmax_scaling: how softmax saturates with d_k, that its gradients become rare rather than small, where it is uniform and
// where saturated, and how far measurements deviate from theory.

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/ablation/scaling/quadrature.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/material.hpp"
#include "experiments/report/series.hpp"
#include "experiments/study/softmax_scaling.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace {

template <class Number>
Number parsed(std::string const& text) {
  auto const number = parsed_number<Number>(text);
  if (!number) throw Error(fmt::format("'{}' is no number", text));
  return *number;
}

Quantity quantity_of(std::string const& text) {
  for (std::size_t q = 0; q < quantities; ++q)
    if (text == name(static_cast<Quantity>(q))) return static_cast<Quantity>(q);
  throw Error(fmt::format("'{}' is no quantity of this study", text));
}

/// The cells that the figures show.
struct ShownCells {
  std::vector<ScalingCell> const& cells;
  std::string distribution;
  std::vector<std::string> scales;
  Index keys = 0;

  bool has(std::string const& scale) const { return std::ranges::find(scales, scale) != scales.end(); }
  bool holds(ScalingCell const& cell, std::string const& scale) const {
    return cell.distribution == distribution && cell.keys == keys && cell.scale == scale;
  }
};

std::string title_of(Quantity q) {
  switch (q) {
    case Quantity::trace:
      return "mean of tr J";
    case Quantity::frobenius_squared:
      return "mean of ‖J‖²";
    case Quantity::frobenius_median:
      return "median of ‖J‖";
    case Quantity::entropy:
      return "mean entropy (nat)";
    case Quantity::max_weight:
      return "mean of the largest weight";
    case Quantity::query_gradient_squared:
      return "mean of ‖∂p/∂q‖²";
    case Quantity::key_gradient_squared:
      return "mean of ‖∂p/∂k‖²";
    default:
      return name(q);
  }
}

SeriesPoint point_of(ScalingCell const& cell, Measured const& value) {
  double const half = 1.96 * value.standard_error;
  return {static_cast<double>(cell.d_k), value.mean, value.mean - half, value.mean + half, value.theory};
}

Series series_of(ShownCells const& shown, std::string const& scale, Quantity q, std::size_t look) {
  Series series{scale_text(scale), look, {}};
  for (auto const& cell : shown.cells) {
    if (auto const* const value = shown.holds(cell, scale) ? cell.get(q) : nullptr) series.points.push_back(point_of(cell, *value));
  }
  std::ranges::sort(series.points, {}, &SeriesPoint::x);
  return series;
}

/// The limit of a quantity without a scale for large d_k; nothing if none is known.
std::optional<double> limit_of(Quantity q, double d, Index keys) {
  double const limit = expected_maximum(keys) / std::sqrt(d);
  switch (q) {
    case Quantity::trace:
      return limit;
    case Quantity::frobenius_squared:
      return limit / 3;
    case Quantity::entropy:
      return std::numbers::pi * std::numbers::pi / 6 * limit;
    case Quantity::max_weight:
      return 1 - std::numbers::ln2 * limit;
    case Quantity::frobenius_median:
      return 2 * std::exp(-std::sqrt(d) * gap_quantile(keys, 0.5));
    case Quantity::query_gradient_squared:
      return limit * d / 3;
    default:
      return std::nullopt;
  }
}

/// The limit at the d_k of another series, from where it means something.
Series limit_beside(Series const& measured, Quantity q, Index keys) {
  Series series{"limit, no scale", 0, {}, true};
  for (auto const& point : measured.points) {
    if (auto const limit = limit_of(q, point.x, keys); limit && point.x >= 4) series.points.push_back({point.x, {}, 0, 0, limit});
  }
  return series;
}

bool is_logarithmic(Quantity q) { return q != Quantity::max_weight; }

Figure growth(ShownCells const& shown, bool further) {
  SeriesFigure figure{.name = fmt::format("growth_{}_{}", shown.distribution, shown.keys),
                      .title = fmt::format("Components: {}; {} keys", shown.distribution, shown.keys),
                      .caption = "",
                      .x = "d_k",
                      .panels = {},
                      .further = further};
  if (shown.distribution == "logits") figure.title = fmt::format("Independent normal logits, {} keys", shown.keys);
  bool theory = false;
  double largest = 0;
  for (auto const q : {Quantity::trace, Quantity::entropy, Quantity::max_weight, Quantity::frobenius_median, Quantity::frobenius_squared,
                       Quantity::query_gradient_squared}) {
    SeriesPanel panel{.title = title_of(q), .series = {}, .log_y = is_logarithmic(q)};
    for (std::size_t i = 0; i < shown.scales.size(); ++i) {
      auto series = series_of(shown, shown.scales[i], q, i + 1);
      if (series.points.empty()) continue;
      for (auto const& point : series.points) {
        theory = theory || point.theory.has_value();
        if (*point.y > 0) largest = std::max(largest, (point.high - point.low) / 2 / *point.y);
      }
      if (shown.scales[i] == "none") panel.series.push_back(limit_beside(series, q, shown.keys));
      panel.series.push_back(std::move(series));
    }
    if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
  }
  figure.caption = fmt::format(
      "Points: means over samples with 95 % intervals, none wider than ±{:.1f} %{}.", 100 * largest,
      theory ? "; lines: exact expectations by quadrature, straight between the d_k measured" : "; no theory is known for this law");
  if (shown.has("none"))
    figure.caption +=
        " Dashed: the limits for large d_k without a scale, m_n/√d for tr J and its multiples, 2e^(−√d·gap) for the median. Without a "
        "scale "
        "softmax saturates: tr J and the entropy fall as 1/√d_k, the median of ‖J‖ exponentially, while the mean square of the gradient by "
        "the query grows.";
  if (shown.has("rsqrt")) figure.caption += " With 1/√d_k all of them stay near where they are at d_k = 1.";
  return figure_of(figure);
}

/// A norm of which the study has quantiles.
struct NormQuantiles {
  std::string name, file;
  Quantity q1, q10, median, q90, q99, top, squared;
};
NormQuantiles const& norm_of_jacobian() {
  static NormQuantiles const norm{"‖J‖",
                                  "fans",
                                  Quantity::frobenius_1,
                                  Quantity::frobenius_10,
                                  Quantity::frobenius_median,
                                  Quantity::frobenius_90,
                                  Quantity::frobenius_99,
                                  Quantity::frobenius_top,
                                  Quantity::frobenius_squared};
  return norm;
}
NormQuantiles const& norm_of_gradient() {
  static NormQuantiles const norm{"‖∂p/∂q‖",
                                  "gradient_fans",
                                  Quantity::query_gradient_1,
                                  Quantity::query_gradient_10,
                                  Quantity::query_gradient_median,
                                  Quantity::query_gradient_90,
                                  Quantity::query_gradient_99,
                                  Quantity::query_gradient_top,
                                  Quantity::query_gradient_squared};
  return norm;
}

/// Bands between quantiles of a norm under one scale.
SeriesPanel fan(ShownCells const& shown, NormQuantiles const& norm, std::string const& scale) {
  constexpr double floor = 1e-12;
  bool const of_jacobian = norm.median == Quantity::frobenius_median;
  SeriesPanel panel{norm.name + ", " + scale_text(scale), {}, true, floor, of_jacobian ? 2.0 : 30.0, floor / 2};
  std::vector<ScalingCell const*> cells;
  for (auto const& cell : shown.cells)
    if (shown.holds(cell, scale) && cell.get(norm.q99) && cell.get(norm.median) && cell.get(norm.squared)) cells.push_back(&cell);
  std::ranges::sort(cells, {}, [](ScalingCell const* cell) { return cell->d_k; });
  constexpr std::size_t of_median = 4, of_mean = 5;  // colours that none of the three usual scales has
  Series middle{"median", of_median, {}}, root{"√ of the mean square", of_mean, {}}, limit{"2e^(−√d·gap)", 0, {}, true};
  FigureLayer light{As::band, {}, {.colour = line_colour(of_median)}}, darker = light;
  for (ScalingCell const* const cell : cells) {
    auto const at = [&](Quantity q) { return std::max(cell->get(q)->mean, floor / 10); };
    auto const d = static_cast<double>(cell->d_k);
    light.points.push_back({d, at(norm.median), at(norm.q1), at(norm.q99)});
    darker.points.push_back({d, at(norm.median), at(norm.q10), at(norm.q90)});
    middle.points.push_back(point_of(*cell, *cell->get(norm.median)));
    middle.points.back().theory = middle.points.back().y;  // joined, for no theory is known
    auto const& square = *cell->get(norm.squared);
    auto const of = [](double x) { return std::sqrt(std::max(x, 0.0)); };
    double const half = 1.96 * square.standard_error;
    root.points.push_back({d, of(square.mean), of(square.mean - half), of(square.mean + half), of(square.theory.value_or(square.mean))});
    if (of_jacobian && scale == "none" && d >= 16)
      limit.points.push_back({d, {}, 0, 0, limit_of(Quantity::frobenius_median, d, shown.keys)});
  }
  panel.beneath = {std::move(light), std::move(darker)};
  if (!limit.points.empty()) panel.series.push_back(std::move(limit));
  panel.series.push_back(std::move(middle));
  panel.series.push_back(std::move(root));
  return panel;
}

/// The share of the mean square in the largest 1 % of the samples; `text`: a sentence on it for no scale.
SeriesPanel share_of_top(ShownCells const& shown, NormQuantiles const& norm, std::string& text) {
  SeriesPanel share{.title = fmt::format("% of Σ{}² in the top 1 % of samples", norm.name), .series = {}};
  for (std::size_t i = 0; i < shown.scales.size(); ++i) {
    auto series = series_of(shown, shown.scales[i], norm.top, i + 1);
    for (auto& point : series.points) {
      point.y = 100 * *point.y, point.low *= 100, point.high *= 100;
      point.theory = point.y;  // joined
    }
    if (shown.scales[i] == "none" && !series.points.empty())
      text = fmt::format(" At d_k = {} without a scale the largest 1 % of the samples carry {:.0f} % of the mean square.",
                         series.points.back().x, *series.points.back().y);
    share.series.push_back(std::move(series));
  }
  return share;
}

/// The median at the largest d_k over its limit, which leaves out all but the two largest logits.
std::string limit_text(ShownCells const& shown) {
  ScalingCell const* last = nullptr;
  for (auto const& cell : shown.cells)
    if (shown.holds(cell, "none") && cell.get(Quantity::frobenius_median) && (!last || cell.d_k > last->d_k)) last = &cell;
  if (last == nullptr || last->d_k < 64) return "";
  auto const& median = *last->get(Quantity::frobenius_median);
  double const limit = *limit_of(Quantity::frobenius_median, static_cast<double>(last->d_k), shown.keys);
  return fmt::format(" At d_k = {} the median is {:.3f} ± {:.3f} times that limit, in which a third key has no part.", last->d_k,
                     median.mean / limit, 1.96 * median.standard_error / limit);
}

Figure fans(ShownCells const& shown, NormQuantiles const& norm, bool further) {
  SeriesFigure figure{.name = fmt::format("{}_{}_{}", norm.file, shown.distribution, shown.keys),
                      .title = fmt::format("How {} is spread, {} keys", norm.name, shown.keys),
                      .caption = "",
                      .x = "d_k",
                      .panels = {},
                      .further = further};
  for (auto const& scale : shown.scales)
    if (scale == "none" || scale == "rsqrt") figure.panels.push_back(fan(shown, norm, scale));
  std::string share_text;
  figure.panels.push_back(share_of_top(shown, norm, share_text));
  figure.caption = fmt::format(
      "Light band: from the 1 % to the 99 % quantile of {} over the samples, darker: 10 % to 90 %; nothing below 1e-12 is drawn.",
      norm.name);
  if (shown.has("none")) {
    figure.caption +=
        norm.median == Quantity::frobenius_median
            ? " Without a scale the typical gradient vanishes as 2e^(−√d·gap), gap the median distance of the two largest of n standard "
              "normals (dashed), but the mean square falls as 1/√d_k only: few samples, in which two keys tie, carry it."
            : " The typical gradient by the query vanishes too, while its mean square grows, for it is √d_k times as large in the few "
              "samples in which two keys tie.";
    figure.caption += (norm.median == Quantity::frobenius_median ? limit_text(shown) : "") + share_text;
  }
  return figure_of(figure);
}

std::string slope_table(ShownCells const& shown) {
  std::string body;
  for (auto const& slope : slopes_of(shown.cells)) {
    if (slope.distribution != shown.distribution || slope.keys != shown.keys) continue;
    double limit = slope.quantity == Quantity::query_gradient_squared || slope.quantity == Quantity::key_gradient_squared ? 0.5 : -0.5;
    body +=
        html_row({fmt::format("{}, {}", title_of(slope.quantity), scale_text(slope.scale)), short_number(slope.line.slope, 4, true),
                  slope.line.interval ? fmt::format("{:+.4f} … {:+.4f}", slope.line.interval->low, slope.line.interval->high) : "",
                  slope.theory ? fmt::format("{:+.4f}", *slope.theory) : "–", slope.scale == "none" ? fmt::format("{:+.1f}", limit) : "–"});
  }
  if (body.empty()) return "";
  return fmt::format("<h3>Exponents: slopes over d_k ≥ 64, {} keys</h3>\n", shown.keys) +
         html_table("Slopes", {"quantity, scale", "measured", "95 % interval", "exact, same d_k", "limit"}, body) +
         "<p class=\"note\">Least squares in double logarithms. The interval is that of a straight line's residuals: it holds the bend "
         "that "
         "the exact slope over the same d_k has too, and the noise of the measurements.</p>\n";
}

}  // namespace

std::vector<ScalingCell> cells_of(CsvRows const& csv, std::filesystem::path const& path) {
  std::vector<ScalingCell> cells;
  for (std::size_t i = 1; i < csv.size(); ++i) {
    auto const& line = csv[i];
    try {
      if (line.size() != 8) throw Error(fmt::format("it has {} fields, but needs 8", line.size()));
      ScalingCell key{line[0], line[1], parsed<Index>(line[2]), parsed<Index>(line[3])};
      bool const same = !cells.empty() && cells.back().distribution == key.distribution && cells.back().scale == key.scale &&
                        cells.back().d_k == key.d_k && cells.back().keys == key.keys;
      if (!same) cells.push_back(std::move(key));
      Measured value{parsed<double>(line[5]), parsed<double>(line[6]), {}};
      if (!line[7].empty()) value.theory = parsed<double>(line[7]);
      heed::at(cells.back().values, quantity_of(line[4])) = value;
    } catch (Error const& error) {
      throw FileError(fmt::format("{}: line {}: {}", path.string(), i + 1, error.what()));
    }
  }
  return cells;
}

std::vector<StudyPart> softmax_scaling_page(StudyRecord const& record) {
  auto const cells = cells_of(record.csv, record.folder / "results.csv");
  std::vector<std::string> distributions, scales;
  std::set<Index> keys;
  for (auto const& cell : cells) {
    if (!cell.of_law()) continue;
    if (std::ranges::find(distributions, cell.distribution) == distributions.end()) distributions.push_back(cell.distribution);
    if (std::ranges::find(scales, cell.scale) == scales.end()) scales.push_back(cell.scale);
    keys.insert(cell.keys);
  }
  if (distributions.empty()) return {};
  auto const main = std::ranges::find(distributions, "gaussian") != distributions.end() ? "gaussian" : distributions.front();
  ShownCells const first{cells, main, scales, keys.contains(10) ? 10 : *keys.begin()};
  StudyPart saturation{"Saturation over d_k", slope_table(first), {growth(first, false)}};
  StudyPart spread{"Small or rare: how gradients are spread", "", {fans(first, norm_of_jacobian(), false)}};
  auto const has_gradient = [](ScalingCell const& cell) { return cell.get(Quantity::query_gradient_median) != nullptr; };
  bool const gradients = main != "logits" && std::ranges::any_of(cells, has_gradient);
  if (gradients) spread.figures.push_back(fans(first, norm_of_gradient(), false));
  for (auto const& distribution : distributions) {
    if (distribution != main) saturation.figures.push_back(growth({cells, distribution, scales, first.keys}, true));
  }
  if (*keys.rbegin() != first.keys) {
    ShownCells const most{cells, main, scales, *keys.rbegin()};
    saturation.figures.push_back(growth(most, true));
    spread.figures.push_back(fans(most, norm_of_jacobian(), true));
    if (gradients) spread.figures.push_back(fans(most, norm_of_gradient(), true));
  }
  std::vector<StudyPart> parts{std::move(saturation), std::move(spread)};
  if (auto maps = saturation_maps(cells, main, scales); maps) parts.push_back({"From uniform to saturated", "", {std::move(*maps)}});
  if (auto layers = layers_before_training(cells); layers)
    parts.push_back({"Through layers, before training", table_of_layers(cells), {std::move(*layers)}});
  if (auto agreement = agreement_with_theory(cells); agreement) parts.push_back({"Agreement with theory", "", {std::move(*agreement)}});
  return parts;
}

}  // namespace heed
