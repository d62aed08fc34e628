#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <boost/math/distributions/normal.hpp>
#include <fmt/format.h>

#include "experiments/report/html.hpp"
#include "experiments/report/series.hpp"
#include "experiments/report/traces.hpp"
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

std::string ticks_of(std::vector<Index> const& values, std::size_t every) {
  std::string ticks;
  for (std::size_t i = 0; i < values.size(); i += every) ticks += fmt::format("{}'{}' {}", i > 0 ? ", " : "", values[i], i);
  return ticks;
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
  constexpr double left = 0.55, right = 0.75, gap = 0.14;
  PanelGrid const panels{.count = maps.size() * across,
                         .across = across,
                         .left = left,
                         .gap = gap,
                         .width = PanelGrid::width_between(left, right, gap, across),
                         .height = 0.95,
                         .head = 0.42,
                         .below = 0.42};
  double const height = panels.figure_height();
  std::string commands = std::string(cividis) + "set border lw 0.6\nset tics out nomirror scale 0.4\nset key off\nset multiplot\n";
  commands +=
      fmt::format("set xrange [-0.5:{}]\nset yrange [-0.5:{}]\n", static_cast<double>(d.size()) - 0.5, static_cast<double>(n.size()) - 0.5);
  for (std::size_t row = 0; row < maps.size(); ++row) {
    auto const& map = maps[row];
    commands += fmt::format("{}set cbrange [{:g}:{:g}]\nset format cb '%g'\n",
                            map.logarithmic ? "set logscale cb\n" : "unset logscale cb\n", map.low, map.high);
    for (std::size_t k = 0; k < across; ++k) {
      commands += fmt::format("$h{}_{} << EOD\n", row, k);
      for (auto const keys : n) {
        for (auto const width : d) {
          auto const found = std::ranges::find_if(cells, [&](ScalingCell const& cell) {
            return cell.d_k == width && cell.keys == keys && cell.scale == scales[k] && cell.distribution == distribution;
          });
          auto const* const value = found == cells.end() ? nullptr : found->get(map.quantity);
          commands +=
              value ? fmt::format("{:.5g} ", std::clamp(map.relative(value->mean, static_cast<double>(keys)), map.low, map.high)) : "NaN ";
        }
        commands += '\n';
      }
      std::size_t const place = row * across + k;
      commands += "EOD\n" + panels.place(place);
      commands += k == 0 ? fmt::format("set ytics ({})\nset ylabel 'keys n' offset 1\n", ticks_of(n, n.size() > 5 ? 2 : 1))
                         : "set ytics format ''\nunset ytics\nunset ylabel\n";
      commands += panels.lowest(place) ? fmt::format("set xtics ({})\nset xlabel 'd_k' offset 0,0.6\n", ticks_of(d, d.size() > 6 ? 4 : 2))
                                       : "unset xtics\nunset xlabel\n";
      commands += k + 1 == across
                      ? fmt::format("set colorbox user origin screen {:.4f}, screen {:.4f} size screen 0.022, screen {:.4f} noborder\n",
                                    (Figure::width - right + 0.1) / Figure::width, (panels.top_of(place) - panels.height) / height,
                                    panels.height / height)
                      : "unset colorbox\n";
      commands += fmt::format(
          "set label 1 {} at graph 0, graph 1 offset character 0,0.6 left\nset label 2 {} at graph 0, graph 1 offset character 0,1.8 "
          "left\n",
          gnuplot_text(scale_text(scales[k])), gnuplot_text(k == 0 ? map.title : ""));
      commands += fmt::format("plot $h{}_{} matrix with image\n", row, k);
    }
  }
  return Figure{.name = "maps_" + distribution,
                .title = "Where softmax is uniform, where saturated",
                .caption =
                    "Over d_k and the number of keys n, by scale. Top: entropy as a share of the largest, 1 for uniform weights, 0 for "
                    "saturated ones. Below: the typical and the mean square Jacobian over those of uniform weights, √(n−1)/n and "
                    "(n−1)/n²: above 1 between uniform and saturated weights. " +
                    ridge_text(cells, distribution, {scales.begin(), scales.begin() + static_cast<std::ptrdiff_t>(across)}) +
                    " Colours end where the scale beside them does. Each cell is measured to the study's precision.",
                .height = height,
                .commands = commands + "unset multiplot\n"};
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
  std::string data = "$z << EOD\n";
  std::size_t const every = 1 + scores.size() / 400;
  double most = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    bool const tail = i < 60 || i + 60 >= scores.size();  // those in the middle lie on each other
    double const expected = quantile(normal, (static_cast<double>(i) + 0.5) / count);
    most = std::max({most, std::abs(expected), std::abs(scores[i].z)});
    if (tail || i % every == 0) data += fmt::format("{:.4f} {:.4f}\n", expected, scores[i].z);
  }
  double const height = 3.0, end = std::ceil(most * 1.05);
  bool const above = far.z > 0;
  Figure figure{.name = "agreement", .title = "Measured minus exact, in standard errors", .caption = "", .height = height, .commands = ""};
  figure.commands =
      data + "EOD\n" + plot_style + margins(0.55, Figure::width - 0.12, 0.46, height - 0.12, height) +
      fmt::format("set xrange [{0:g}:{1:g}]\nset yrange [{0:g}:{1:g}]\nset xtics 1\nset ytics 1\n", -end, end) +
      "set xlabel 'normal quantile'\nset ylabel '(measured − exact) / standard error' offset 0.5\n" +
      // In the corner that points never come to, for they rise.
      fmt::format("set label 1 {} at graph 0.03, graph 0.95 left\n", gnuplot_text(fmt::format("farthest, {:+.2f}:", far.z))) +
      fmt::format("set label 2 {} at graph 0.03, graph 0.89 left\n", gnuplot_text(what)) +
      fmt::format("$far << EOD\n{:.4f} {:.4f}\nEOD\n", quantile(normal, above ? 1 - 0.5 / count : 0.5 / count), far.z) +
      fmt::format(
          "plot x with lines notitle lw 0.8 lc rgb 'black', $z using 1:2 with points notitle pt 7 ps 0.35 lc rgb '{}', $far using 1:2 with "
          "points notitle pt 6 ps 1 lc rgb '{}'\n",
          line_colour(1), line_colour(2));
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
