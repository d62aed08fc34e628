// The page of softmax_scaling: how softmax saturates with d_k, that its gradients become rare rather than small, where it is uniform and
// where saturated, and how far measurements deviate from theory.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include <fmt/format.h>

#include "experiments/ablation/scaling/quadrature.hpp"
#include "experiments/report/html.hpp"
#include "experiments/study/softmax_scaling.hpp"

namespace heed {

namespace {

using Q = Quantity;

/// The cells that the figures show.
struct ShownCells {
  std::vector<ScalingCell> const& cells;
  std::string distribution;
  std::vector<std::string> scales;
  Index keys = 0;

  bool has(std::string const& scale) const { return std::ranges::find(scales, scale) != scales.end(); }
  /// Those under one scale that have a quantity, by d_k.
  std::vector<ScalingCell const*> under(std::string const& scale, Quantity q) const {
    std::vector<ScalingCell const*> found;
    for (auto const& cell : cells)
      if (cell.distribution == distribution && cell.keys == keys && cell.scale == scale && cell.get(q)) found.push_back(&cell);
    std::ranges::sort(found, {}, &ScalingCell::d_k);
    return found;
  }
};

std::string title_of(Quantity q) {
  constexpr std::array titles{"mean of tr J",     "mean of ‖J‖²",    "median of ‖J‖", "mean entropy (nat)", "mean of the largest weight",
                              "mean of ‖∂p/∂q‖²", "mean of ‖∂p/∂k‖²"};  // in the order of Quantity, which begins with these
  return heed::at(titles, q);
}

/// A measurement with its 95 % interval.
CurvePoint point_of(double x, Measured const& value, double factor = 1) {
  double const half = 1.96 * value.standard_error;
  return {x, factor * value.mean, factor * (value.mean - half), factor * (value.mean + half)};
}

/// The limit of a quantity without a scale for large d_k; nothing if none is known.
std::optional<double> limit_of(Quantity q, double d, Index keys) {
  double const limit = expected_maximum(keys) / std::sqrt(d);
  if (q == Q::trace) return limit;
  if (q == Q::frobenius_squared) return limit / 3;
  if (q == Q::entropy) return std::numbers::pi * std::numbers::pi / 6 * limit;
  if (q == Q::max_weight) return 1 - std::numbers::ln2 * limit;
  if (q == Q::frobenius_median) return 2 * std::exp(-std::sqrt(d) * gap_quantile(keys, 0.5));
  if (q == Q::query_gradient_squared) return limit * d / 3;
  return std::nullopt;
}

// ---------------------------------------------------------------- saturation over d_k

/// A quantity over d_k: lines of theory, the limit without a scale from where it means something, then what was measured.
Panel growth_panel(ShownCells const& shown, Quantity q) {
  std::vector<FigureLayer> layers, measurements;
  for (std::size_t i = 0; i < shown.scales.size(); ++i) {
    auto const cells = shown.under(shown.scales[i], q);
    if (cells.empty()) continue;
    FigureLayer theory{As::line, {}, solid_look(i + 1), scale_text(shown.scales[i])}, limit{As::line, {}, limit_look(), "limit, no scale"};
    auto& measured = measurements.emplace_back(FigureLayer{As::intervals, {}, theory.look, theory.name});
    measured.look.width = 1;
    for (ScalingCell const* const cell : cells) {
      double const d = to_double(cell->d_k);
      auto const& value = *cell->get(q);
      measured.points.push_back(point_of(d, value));
      if (value.theory) theory.points.push_back(CurvePoint::bare(d, *value.theory));
      if (auto const at = limit_of(q, d, shown.keys); at && d >= 4) limit.points.push_back(CurvePoint::bare(d, *at));
    }
    if (shown.scales[i] == "none" && !limit.points.empty()) layers.push_back(std::move(limit));
    if (!theory.points.empty()) layers.push_back(std::move(theory));
  }
  layers.insert(layers.end(), measurements.begin(), measurements.end());
  return panel_of(title_of(q), std::move(layers), q != Q::max_weight);
}

Figure growth(ShownCells const& shown, bool further) {
  Figure figure{.name = fmt::format("growth_{}_{}", shown.distribution, shown.keys),
                .title = shown.distribution == "logits" ? fmt::format("Independent normal logits, {} keys", shown.keys)
                                                        : fmt::format("Components: {}; {} keys", shown.distribution, shown.keys),
                .across = 2,
                .further = further};
  bool theory = false;
  double largest = 0;
  for (auto const q : {Q::trace, Q::entropy, Q::max_weight, Q::frobenius_median, Q::frobenius_squared, Q::query_gradient_squared}) {
    auto panel = growth_panel(shown, q);
    if (panel.layers.empty()) continue;
    for (auto const& layer : panel.layers) {
      theory = theory || (layer.as == As::line && layer.look.colour != limit_colour);
      for (auto const& point : layer.points)
        if (point.y > 0) largest = std::max(largest, (point.high - point.low) / 2 / point.y);
    }
    figure.panels.push_back(std::move(panel));
  }
  share_x(figure, "d_k", Ticks::twos);
  figure.caption = fmt::format(
      "Points: means over samples with 95 % intervals, none wider than ±{:.1f} %{}.", 100 * largest,
      theory ? "; lines: exact expectations by quadrature, straight between the d_k measured" : "; no theory is known for this law");
  if (shown.has("none"))
    figure.caption +=
        " Dashed: the limits for large d_k without a scale, m_n/√d for tr J and its multiples, 2e^(−√d·gap) for the median. Without a "
        "scale softmax saturates: tr J and the entropy fall as 1/√d_k, the median of ‖J‖ exponentially, while the mean square of the "
        "gradient by the query grows.";
  if (shown.has("rsqrt")) figure.caption += " With 1/√d_k all of them stay near where they are at d_k = 1.";
  return figure;
}

std::string slope_table(ShownCells const& shown) {
  TableRows rows{{"quantity, scale", "measured", "95 % interval", "exact, same d_k", "limit"}};
  for (auto const& slope : slopes_of(shown.cells)) {
    if (slope.distribution != shown.distribution || slope.keys != shown.keys) continue;
    rows.push_back({fmt::format("{}, {}", title_of(slope.quantity), scale_text(slope.scale)), short_number(slope.line.slope, 4, true),
                    slope.line.interval ? fmt::format("{:+.4f} … {:+.4f}", slope.line.interval->low, slope.line.interval->high) : "",
                    slope.theory ? fmt::format("{:+.4f}", *slope.theory) : "–",
                    slope.scale == "none" ? (is_gradient(slope.quantity) ? "+0.5" : "-0.5") : "–"});
  }
  if (rows.size() < 2) return "";
  return fmt::format("<h3>Exponents: slopes over d_k ≥ 64, {} keys</h3>\n", shown.keys) + html_table("Slopes", rows) +
         "<p class=\"note\">Least squares in double logarithms. The interval is that of a straight line's residuals: it holds the bend "
         "that the exact slope over the same d_k has too, and the noise of the measurements.</p>\n";
}

// ---------------------------------------------------------------- how gradients are spread

/// A norm of which the study has quantiles; `most`: of its axis.
struct NormQuantiles {
  char const *name, *file;
  Quantity median, squared;
  std::array<Quantity, 5> spread;
  double most;
  bool of_jacobian() const { return median == Q::frobenius_median; }
};
constexpr NormQuantiles norm_of_jacobian{"‖J‖", "fans", Q::frobenius_median, Q::frobenius_squared, spread_of_jacobian, 2},
    norm_of_gradient{"‖∂p/∂q‖", "gradient_fans", Q::query_gradient_median, Q::query_gradient_squared, spread_of_query_gradient, 30};

/// Bands between quantiles of a norm under one scale.
Panel fan(ShownCells const& shown, NormQuantiles const& norm, std::string const& scale) {
  constexpr double floor = 1e-12;
  constexpr std::size_t of_median = 4, of_mean = 5;  // colours that none of the three usual scales has
  FigureLayer light{As::band, {}, {.colour = line_colour(of_median)}},
      darker = light, limit{As::line, {}, limit_look(), "2e^(−√d·gap)"}, middle{As::joined_intervals, {}, solid_look(of_median), "median"},
      root{As::line, {}, solid_look(of_mean), "√ of the mean square"}, roots{As::intervals, {}, root.look, root.name};
  for (ScalingCell const* const cell : shown.under(scale, norm.spread[3])) {
    if (!cell->get(norm.median) || !cell->get(norm.squared)) continue;
    auto const at = [&](Quantity q) { return std::max(cell->mean(q), floor / 10); };
    auto const square_root = [](double x) { return std::sqrt(std::max(x, 0.0)); };
    double const d = to_double(cell->d_k);
    light.points.push_back({d, at(norm.median), at(norm.spread[0]), at(norm.spread[3])});
    darker.points.push_back({d, at(norm.median), at(norm.spread[1]), at(norm.spread[2])});
    middle.points.push_back(point_of(d, *cell->get(norm.median)));
    auto const& square = *cell->get(norm.squared);
    auto const [x, y, low, high] = point_of(d, square);
    roots.points.push_back({d, square_root(y), square_root(low), square_root(high)});
    root.points.push_back(CurvePoint::bare(d, square_root(square.theory.value_or(y))));
    if (norm.of_jacobian() && scale == "none" && d >= 16)
      limit.points.push_back(CurvePoint::bare(d, *limit_of(norm.median, d, shown.keys)));
  }
  Panel panel{.title = norm.name + (", " + scale_text(scale)), .y = log_axis({floor, norm.most}), .layers = {light, darker}};
  if (!limit.points.empty()) panel.layers.push_back(std::move(limit));
  panel.layers.insert(panel.layers.end(), {middle, root, roots});
  return panel;
}

/// The share of the mean square in the largest 1 % of the samples, joined.
Panel share_of_top(ShownCells const& shown, NormQuantiles const& norm) {
  std::vector<FigureLayer> layers;
  for (std::size_t i = 0; i < shown.scales.size(); ++i) {
    FigureLayer line{As::joined_intervals, {}, solid_look(i + 1), scale_text(shown.scales[i])};
    for (ScalingCell const* const cell : shown.under(shown.scales[i], norm.spread[4]))
      line.points.push_back(point_of(to_double(cell->d_k), *cell->get(norm.spread[4]), 100));
    layers.push_back(std::move(line));
  }
  return panel_of(fmt::format("% of Σ{}² in the top 1 % of samples", norm.name), std::move(layers));
}

/// The median at the largest d_k over its limit, which leaves out all but the two largest logits.
std::string limit_text(ShownCells const& shown) {
  auto const cells = shown.under("none", Q::frobenius_median);
  if (cells.empty() || cells.back()->d_k < 64) return "";
  auto const& median = *cells.back()->get(Q::frobenius_median);
  double const limit = *limit_of(Q::frobenius_median, to_double(cells.back()->d_k), shown.keys);
  return fmt::format(" At d_k = {} the median is {:.3f} ± {:.3f} (95 %) times that limit, in which a third key has no part.",
                     cells.back()->d_k, median.mean / limit, 1.96 * median.standard_error / limit);
}

Figure fans(ShownCells const& shown, NormQuantiles const& norm, bool further) {
  Figure figure{
      .name = fmt::format("{}_{}_{}", norm.file, shown.distribution, shown.keys),
      .title = fmt::format("How {} is spread, {} keys", norm.name, shown.keys),
      .caption = fmt::format("Light band: from the 1 % to the 99 % quantile of {} over the samples, darker: 10 % to 90 %; bars: 95 % "
                             "intervals; nothing below 1e-12 is drawn.",
                             norm.name),
      .across = 2,
      .further = further};
  for (auto const& scale : shown.scales)
    if (scale == "none" || scale == "rsqrt") figure.panels.push_back(fan(shown, norm, scale));
  figure.panels.push_back(share_of_top(shown, norm));
  share_x(figure, "d_k", Ticks::twos);
  if (!shown.has("none")) return figure;
  figure.caption +=
      norm.of_jacobian()
          ? " Without a scale the typical gradient vanishes as 2e^(−√d·gap), gap the median distance of the two largest of n standard "
            "normals (dashed), but the mean square falls as 1/√d_k only: few samples, in which two keys tie, carry it." +
                limit_text(shown)
          : " The typical gradient by the query vanishes too, while its mean square grows, for it is √d_k times as large in the few "
            "samples in which two keys tie.";
  if (auto const cells = shown.under("none", norm.spread[4]); !cells.empty())
    figure.caption += fmt::format(" At d_k = {} without a scale the largest 1 % of the samples carry {:.0f} % of the mean square.",
                                  cells.back()->d_k, 100 * cells.back()->mean(norm.spread[4]));
  return figure;
}

// ---------------------------------------------------------------- uniform or saturated

/// One row of maps: what is shown of a cell, on one scale of colours for all scales of the logits.
struct Map {
  char const* title;
  Quantity quantity;
  double (*relative)(double value, double n);
  bool logarithmic;
  double low, high;
};

/// A sentence on the cell whose mean square Jacobian exceeds that of uniform weights most.
std::string ridge_text(ShownCells const& shown) {
  ScalingCell const* highest = nullptr;
  double most = 1;
  for (auto const& cell : shown.cells) {
    auto const* const value = cell.get(Q::frobenius_squared);
    if (value == nullptr || cell.distribution != shown.distribution || !shown.has(cell.scale)) continue;
    double const n = to_double(cell.keys);
    if (double const ratio = value->mean * n * n / (n - 1); ratio > most) most = ratio, highest = &cell;
  }
  if (highest == nullptr) return "Nowhere is the mean square above that of uniform weights.";
  return fmt::format("The mean square is highest, {:.2g} times that of uniform weights, at d_k {} with {} keys and {}.", most, highest->d_k,
                     highest->keys, scale_text(highest->scale));
}

/// Heat maps over (d_k, n) by scale: entropy, typical and mean square Jacobian relative to those of uniform weights. Nothing if d_k or n
/// has one value only.
std::optional<Figure> saturation_maps(ShownCells shown) {
  constexpr std::size_t most = 3;  // scales
  if (shown.scales.size() > most) shown.scales.resize(most);
  std::set<Index> widths, counts;
  for (auto const& cell : shown.cells)
    if (cell.distribution == shown.distribution) widths.insert(cell.d_k), counts.insert(cell.keys);
  if (widths.size() < 2 || counts.size() < 2) return std::nullopt;
  auto const axis = [](std::set<Index> const& values, char const* name) {
    return axis_of_names(mapped(values, [](Index value) { return std::to_string(value); }), name);
  };
  Figure figure{.name = "maps_" + shown.distribution,
                .title = "Where softmax is uniform, where saturated",
                .across = shown.scales.size(),
                .shared_x = true,
                .shared_y = true,
                .frame_height = 0.95};
  for (auto const &map :
       {Map{"entropy / ln n", Q::entropy, [](double x, double n) { return x / std::log(n); }, false, 0, 1},
        {"median ‖J‖ / uniform's", Q::frobenius_median, [](double x, double n) { return x * n / std::sqrt(n - 1); }, true, 1e-3, 10},
        {"mean ‖J‖² / uniform's", Q::frobenius_squared, [](double x, double n) { return x * n * n / (n - 1); }, true, 0.03, 30}}) {
    figure.scales.push_back({.colours = cividis(), .low = map.low, .high = map.high, .log = map.logarithmic});
    for (auto const& scale : shown.scales) {
      auto& panel = figure.panels.emplace_back(
          Panel{.title = (scale == shown.scales.front() ? map.title + std::string("\n") : "") + scale_text(scale),
                .x = axis(widths, "d_k"),
                .y = axis(counts, "keys n"),
                .cells = Cells{.columns = widths.size()}});
      for (Index const n : counts) {
        shown.keys = n;
        auto const cells = shown.under(scale, map.quantity);
        for (Index const width : widths) {
          auto const found = std::ranges::find(cells, width, &ScalingCell::d_k);
          panel.cells->values.push_back(found == cells.end()
                                            ? std::nan("")
                                            : std::clamp(map.relative((*found)->mean(map.quantity), to_double(n)), map.low, map.high));
        }
      }
    }
  }
  figure.caption =
      "Over d_k and the number of keys n, by scale. Top: entropy as a share of the largest, 1 for uniform weights, 0 for saturated ones. "
      "Below: the typical and the mean square Jacobian over those of uniform weights, √(n−1)/n and (n−1)/n²: above 1 between uniform and "
      "saturated weights. " +
      ridge_text(shown) + " Colours end where the scale beside them does. Each cell is measured to the study's precision.";
  return figure;
}

// ---------------------------------------------------------------- layers

/// Gradients of each layer's query weights before training, a panel for each norm placement and scale; nothing without layers.
std::optional<Figure> layers_before_training(CsvLines const& lines) {
  Figure figure{.name = "layers",
                .title = "‖∂L/∂W_q‖ by layer, before training",
                .caption =
                    "Means over draws of weights and random tokens with 95 % intervals, of causal Transformers of width 64 with one "
                    "head whose queries and keys start with components of variance 1, so that q·k has variance d_k where the norm "
                    "stands before it; layer 0 reads the embeddings. L: the cross entropy of random targets.",
                .across = 2};
  auto const place = [](CsvLine const& line) { return line["distribution"].find(" layer"); };
  auto const stack = [&](CsvLine const& line) { return line["distribution"].substr(0, place(line)) + ", " + scale_text(line["scale"]); };
  auto const layer = [&](CsvLine const& line) { return std::stod(line["distribution"].substr(place(line) + 6)); };
  Range range;
  for (auto const& [title, some] : grouped(lines_with(lines, {{"quantity", name(Q::query_weights_gradient)}}), stack)) {
    figure.panels.push_back({.title = title, .layers = curves_of(grouped(some, by("d_k", "d_k {}")), layer, 1.96, solid_look)});
    for (double const mean : numbers_of(some, "mean")) range.include(mean);
  }
  if (!(range.low > 0) || figure.panels.empty()) return std::nullopt;
  for (auto& panel : figure.panels) panel.y = log_axis({range.low / 1.5, range.high * 1.5});
  share_x(figure, "layer", Ticks::even);
  return figure;
}

/// The first and last layer at the largest d_k, as HTML.
std::string table_of_layers(std::vector<ScalingCell> const& cells) {
  TableRows rows{{"norm, scale", "d_k", "first layer", "last layer", "first over last"}};
  for (std::string const placement : {"pre", "post"}) {
    for (std::string const scale : {"none", "rsqrt"}) {
      std::map<Index, std::vector<double>> widths;  // by d_k; layers stand in their order
      for (auto const& cell : cells)
        if (cell.of_layer() && cell.distribution.starts_with(placement) && cell.scale == scale)
          widths[cell.d_k].push_back(cell.mean(Q::query_weights_gradient));
      if (widths.empty()) continue;
      auto const& [width, norms] = *widths.rbegin();
      rows.push_back({placement + "-norm, " + scale_text(scale), fmt::format("{}", width), fmt::format("{:.3g}", norms.front()),
                      fmt::format("{:.3g}", norms.back()), fmt::format("{:.2f}", norms.front() / norms.back())});
    }
  }
  return html_table("Layers", rows);
}

}  // namespace

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
  StudyPart spread{"Small or rare: how gradients are spread", "", {fans(first, norm_of_jacobian, false)}};
  bool const gradients =
      main != "logits" && std::ranges::any_of(cells, [](auto const& cell) { return cell.get(Q::query_gradient_median); });
  if (gradients) spread.figures.push_back(fans(first, norm_of_gradient, false));
  for (auto const& distribution : distributions)
    if (distribution != main) saturation.figures.push_back(growth({cells, distribution, scales, first.keys}, true));
  if (*keys.rbegin() != first.keys) {
    ShownCells const most{cells, main, scales, *keys.rbegin()};
    saturation.figures.push_back(growth(most, true));
    spread.figures.push_back(fans(most, norm_of_jacobian, true));
    if (gradients) spread.figures.push_back(fans(most, norm_of_gradient, true));
  }
  std::vector<StudyPart> parts{std::move(saturation), std::move(spread)};
  if (auto maps = saturation_maps(first)) parts.push_back({"From uniform to saturated", "", {std::move(*maps)}});
  if (auto layers = layers_before_training(csv_lines(record.csv, record.folder / "results.csv")))
    parts.push_back({"Through layers, before training", table_of_layers(cells), {std::move(*layers)}});
  if (auto agreement = agreement_with_theory(cells)) parts.push_back({"Agreement with theory", "", {std::move(*agreement)}});
  return parts;
}

}  // namespace heed
