#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <boost/math/distributions/normal.hpp>
#include <fmt/format.h>

#include "experiments/report/html.hpp"
#include "experiments/report/series.hpp"
#include "experiments/study/agreement.hpp"
#include "experiments/study/softmax_scaling.hpp"

namespace heed {

namespace {

/// One row of maps: what is shown of a cell, on one scale of colours for all scales of the logits.
struct Map {
  char const* title;
  Quantity quantity;
  std::function<double(double, double)> relative;  ///< of value and n
  bool logarithmic;
  double low, high;
};

std::vector<std::string> texts_of(std::vector<Index> const& values) {
  std::vector<std::string> texts;
  for (Index const value : values) texts.push_back(fmt::format("{}", value));
  return texts;
}

/// A sentence on the cell whose mean square Jacobian exceeds that of uniform weights most.
std::string ridge_text(std::vector<ScalingCell> const& cells, std::string const& distribution, std::vector<std::string> const& scales) {
  ScalingCell const* highest = nullptr;
  double most = 1;
  for (auto const& cell : cells) {
    auto const* const value = cell.get(Quantity::frobenius_squared);
    bool const shown = cell.distribution == distribution && std::ranges::find(scales, cell.scale) != scales.end();
    if (value == nullptr || !shown) continue;
    auto const n = static_cast<double>(cell.keys);
    if (double const ratio = value->mean * n * n / (n - 1); ratio > most) most = ratio, highest = &cell;
  }
  if (highest == nullptr) return "Nowhere is the mean square above that of uniform weights.";
  return fmt::format("The mean square is highest, {:.2g} times that of uniform weights, at d_k {} with {} keys and {}.", most, highest->d_k,
                     highest->keys, scale_text(highest->scale));
}

/// A map under one scale of the logits: rows are numbers of keys, columns d_k.
Cells cells_of(Map const& map, std::vector<ScalingCell> const& cells, std::string const& distribution, std::string const& scale,
               std::vector<Index> const& d, std::vector<Index> const& n) {
  Cells shown{.columns = d.size()};
  for (auto const keys : n) {
    for (auto const width : d) {
      auto const found = std::ranges::find_if(cells, [&](ScalingCell const& cell) {
        return cell.d_k == width && cell.keys == keys && cell.scale == scale && cell.distribution == distribution;
      });
      auto const* const value = found == cells.end() ? nullptr : found->get(map.quantity);
      shown.values.push_back(value ? std::clamp(map.relative(value->mean, static_cast<double>(keys)), map.low, map.high) : std::nan(""));
    }
  }
  return shown;
}

}  // namespace

std::optional<Figure> saturation_maps(std::vector<ScalingCell> const& cells, std::string const& distribution,
                                      std::vector<std::string> const& scales) {
  std::set<Index> widths, counts;
  for (auto const& cell : cells)
    if (cell.distribution == distribution) widths.insert(cell.d_k), counts.insert(cell.keys);
  if (widths.size() < 2 || counts.size() < 2) return std::nullopt;
  std::vector<Index> const d(widths.begin(), widths.end()), n(counts.begin(), counts.end());
  std::vector<Map> const maps{{"entropy / ln n", Quantity::entropy, [](double x, double keys) { return x / std::log(keys); }, false, 0, 1},
                              {"median ‖J‖ / uniform's", Quantity::frobenius_median,
                               [](double x, double keys) { return x * keys / std::sqrt(keys - 1); }, true, 1e-3, 10},
                              {"mean ‖J‖² / uniform's", Quantity::frobenius_squared,
                               [](double x, double keys) { return x * keys * keys / (keys - 1); }, true, 0.03, 30}};
  std::size_t const across = std::min<std::size_t>(scales.size(), 3);
  Figure figure{.name = "maps_" + distribution,
                .title = "Where softmax is uniform, where saturated",
                .across = across,
                .shared_x = true,
                .shared_y = true,
                .frame_height = 0.95};
  for (auto const& map : maps) {
    figure.scales.push_back({.colours = cividis(), .low = map.low, .high = map.high, .log = map.logarithmic});
    for (std::size_t k = 0; k < across; ++k)
      figure.panels.push_back({.title = (k == 0 ? map.title + std::string("\n") : "") + scale_text(scales[k]),
                               .x = axis_of(texts_of(d), "d_k"),
                               .y = axis_of(texts_of(n), "keys n"),
                               .cells = cells_of(map, cells, distribution, scales[k], d, n)});
  }
  figure.caption =
      "Over d_k and the number of keys n, by scale. Top: entropy as a share of the largest, 1 for uniform weights, 0 for saturated ones. "
      "Below: the typical and the mean square Jacobian over those of uniform weights, √(n−1)/n and (n−1)/n²: above 1 between uniform and "
      "saturated weights. " +
      ridge_text(cells, distribution, {scales.begin(), scales.begin() + static_cast<std::ptrdiff_t>(across)}) +
      " Colours end where the scale beside them does. Each cell is measured to the study's precision.";
  return figure;
}

std::optional<Figure> agreement_with_theory(std::vector<ScalingCell> const& cells) {
  auto scores = scores_of(cells);
  if (scores.size() < 3) return std::nullopt;
  std::ranges::sort(scores, {}, &ZScore::z);
  auto const count = static_cast<double>(scores.size());
  auto const agreement = agreement_of(scores);
  auto const& far = agreement.farthest;
  auto const what = fmt::format("{}, {}, {}, d_k {}, {} keys", name(far.quantity), far.cell->distribution, scale_text(far.cell->scale),
                                far.cell->d_k, far.cell->keys);
  boost::math::normal const normal;
  FigureLayer points{As::dots, {}, {.colour = line_colour(1), .size = 0.35}};
  std::size_t const every = 1 + scores.size() / 400;
  double most = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    bool const tail = i < 60 || i + 60 >= scores.size();  // those in the middle lie on each other
    double const expected = quantile(normal, (static_cast<double>(i) + 0.5) / count);
    most = std::max({most, std::abs(expected), std::abs(scores[i].z)});
    if (tail || i % every == 0) points.points.push_back({expected, scores[i].z, scores[i].z, scores[i].z});
  }
  double const end = std::ceil(most * 1.05), place = quantile(normal, far.z > 0 ? 1 - 0.5 / count : 0.5 / count);
  FigureLayer const line{As::line, {{-end, -end, 0, 0}, {end, end, 0, 0}}, {.colour = line_colour(0), .width = 0.8}};
  FigureLayer const ring{As::dots, {{place, far.z, far.z, far.z}}, {.colour = line_colour(2), .width = 1, .size = 1, .open = true}};
  // The texts are in the corner that points never come to, for they rise.
  Panel const panel{.x = {.name = "normal quantile", .low = -end, .high = end, .step = 1},
                    .y = {.name = "(measured − exact) / standard error", .low = -end, .high = end, .step = 1},
                    .layers = {line, std::move(points), ring},
                    .notes = {{.text = fmt::format("farthest, {:+.2f}:", far.z), .x = 0.03, .y = 0.95, .of_frame = true},
                              {.text = what, .x = 0.03, .y = 0.89, .of_frame = true}}};
  Figure figure{.name = "agreement", .title = "Measured minus exact, in standard errors", .panels = {panel}, .frame_height = 2.4};
  figure.caption = fmt::format(
      "All {} numbers for which theory is known, in order, beside the quantiles of a standard normal; the line is perfect agreement. The "
      "farthest, {:+.2f}, is {}. Numbers of one distribution, d_k and number of keys share samples and move together; each of these {} "
      "draws "
      "counts once in the mean of the squares, {:.3f}: 1 is expected if the theory and the standard errors are right, and of 100 such "
      "studies "
      "95 lie within {:.2f} … {:.2f}. Points in the middle are thinned.",
      scores.size(), far.z, what, agreement.draws, agreement.mean_square, agreement.expected.low, agreement.expected.high);
  return figure;
}

std::optional<Figure> layers_before_training(std::vector<ScalingCell> const& cells) {
  SeriesFigure figure{
      .name = "layers", .title = "‖∂L/∂W_q‖ by layer, before training", .caption = "", .x = "layer", .log_x = false, .panels = {}};
  double low = INFINITY, high = 0;
  for (auto const& cell : cells) {
    auto const* const value = cell.of_layer() ? cell.get(Quantity::query_weights_gradient) : nullptr;
    if (value == nullptr) continue;
    auto const split = cell.distribution.find(" layer");
    auto const title = cell.distribution.substr(0, split) + ", " + scale_text(cell.scale);
    auto panel = std::ranges::find(figure.panels, title, &SeriesPanel::title);
    if (panel == figure.panels.end()) panel = figure.panels.insert(panel, {.title = title, .series = {}, .log_y = true});
    auto const width = fmt::format("d_k {}", cell.d_k);
    auto series = std::ranges::find(panel->series, width, &Series::name);
    if (series == panel->series.end()) series = panel->series.insert(series, {width, panel->series.size(), {}});
    double const half = 1.96 * value->standard_error;
    series->points.push_back(
        {std::stod(cell.distribution.substr(split + 6)), value->mean, value->mean - half, value->mean + half, value->mean});
    low = std::min(low, value->mean), high = std::max(high, value->mean);
  }
  if (figure.panels.empty() || !(low > 0)) return std::nullopt;
  for (auto& panel : figure.panels) panel.low = low / 1.5, panel.high = high * 1.5;
  figure.caption =
      "Means over draws of weights and random tokens with 95 % intervals, of causal Transformers of width 64 with one head whose queries "
      "and "
      "keys start with components of variance 1, so that q·k has variance d_k where the norm stands before it; layer 0 reads the "
      "embeddings. L: the cross entropy of random targets.";
  return figure_of(figure);
}

std::string table_of_layers(std::vector<ScalingCell> const& cells) {
  std::string html;
  for (std::string const place : {"pre", "post"}) {
    for (std::string const scale : {"none", "rsqrt"}) {
      std::vector<ScalingCell const*> found;
      for (auto const& cell : cells)
        if (cell.of_layer() && cell.distribution.starts_with(place) && cell.scale == scale) found.push_back(&cell);
      if (found.empty()) continue;
      Index const most = std::ranges::max(found, {}, [](ScalingCell const* cell) { return cell->d_k; })->d_k;
      std::vector<double> widest;  // by layer: they stand in their order
      for (ScalingCell const* const cell : found)
        if (cell->d_k == most) widest.push_back(cell->get(Quantity::query_weights_gradient)->mean);
      html += html_row({place + "-norm, " + scale_text(scale), fmt::format("{}", most), fmt::format("{:.3g}", widest.front()),
                        fmt::format("{:.3g}", widest.back()), fmt::format("{:.2f}", widest.front() / widest.back())});
    }
  }
  if (html.empty()) return html;
  return html_table("Layers", {"norm, scale", "d_k", "first layer", "last layer", "first over last"}, html);
}

}  // namespace heed
