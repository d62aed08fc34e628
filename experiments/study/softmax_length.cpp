// What softmax does to gradients as the number of keys grows: n scores of standard deviation σ, independent, equicorrelated, or products
// with keys on a sphere; the Jacobian, the entropy and the largest weight beside their exact expectations at finite n and the limits of the
// random energy model; and the gap function, by which one law covers √log n, log n and powers of n.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <boost/math/special_functions/digamma.hpp>
#include <fmt/format.h>

#include "experiments/ablation/scaling/quadrature.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/report/figure.hpp"
#include "experiments/study/samples.hpp"
#include "experiments/study/softmax_rows.hpp"
#include "experiments/study/study.hpp"
#include "experiments/study/trained.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace {

struct SoftmaxLengthSettings : Settings {
  std::vector<double> keys{64, 512, 4096}, sigma{0.5, 1, 2, 3.5, 5, 7, 10, 14}, correlation{0.25, 0.5, 0.75}, width{3, 5, 9};
  std::vector<std::string> variants{"log_length", "yarn", "scale_invariant", "softmax1", "sigmoid", "entmax15"};
  double variants_at = 3.5;
  std::optional<std::string> run;
  Index scores = 6'000'000;
  bool quick = false;

  std::vector<Field> fields() override {
    return {field(&keys, "keys", "numbers of keys, integers").in(4, 65536),
            field(&sigma, "sigma", "standard deviations of the scores").in(0.01, 100),
            field(&correlation, "correlation", "correlations of equicorrelated scores").in(0, 0.99),
            field(&width, "width", "dimensions of the space of the sphere, integers").in(2, 4096),
            field(&variants, "variants", "beside softmax: other scales, as trained with the first number of keys, and other aligns")
                .one_of({"log_length", "yarn", "scale_invariant", "softmax1", "sigmoid", "entmax15"}),
            field(&variants_at, "variants_at", "standard deviation of the scores of variants").in(0.01, 100),
            field(&run, "run", "a trained run: its heads on its validation data, scores q·k/√d of the last queries, too"),
            field(&scores, "scores", "scores that are drawn per cell").in(10'000, 1e10),
            field(&quick, "quick", "a tenth of the scores")};
  }
  std::optional<std::string> contradiction() override {
    for (auto const& [name, list] : {std::pair("keys", &keys), std::pair("width", &width)})
      for (double const value : *list)
        if (value != std::floor(value)) return fmt::format("{}: {} is not an integer", name, value);
    if (keys.empty()) return "keys: is empty";
    return std::nullopt;
  }
};

/// A point of the grid.
struct LengthCell {
  std::string scores;  ///< normal, equicorrelated, sphere
  Index keys;
  double sigma, correlation;
  Index width;
  std::string variant = "softmax";
};

/// Rows of scores of a cell, [rows, n]; for the sphere the products of one direction with uniform keys.
std::vector<double> drawn_scores(LengthCell const& cell, Index rows, Stream const& stream) {
  bool const sphere = cell.scores == "sphere";
  Index const numbers = rows * cell.keys * (sphere ? cell.width : 1);
  std::vector<float> normal(static_cast<std::size_t>((numbers + 31) / 32 * 32)), shared(static_cast<std::size_t>((rows + 31) / 32 * 32));
  draw(Law::gaussian, stream.child("scores"), normal);
  draw(Law::gaussian, stream.child("shared"), shared);
  std::vector<double> scores(static_cast<std::size_t>(rows * cell.keys));
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!sphere) {
      auto const row = i / static_cast<std::size_t>(cell.keys);
      scores[i] = cell.sigma * (std::sqrt(cell.correlation) * shared[row] + std::sqrt(1 - cell.correlation) * normal[i]);
      continue;
    }
    double squares = 0;
    auto const* const key = &normal[i * static_cast<std::size_t>(cell.width)];
    for (Index c = 0; c < cell.width; ++c) squares += static_cast<double>(key[c]) * key[c];
    scores[i] = cell.sigma * key[0] / std::sqrt(squares);
  }
  return scores;
}

/// The median with a standard error from the order statistics beside it.
Measured measured_median(std::vector<double> values) {
  std::ranges::sort(values);
  auto const n = static_cast<double>(values.size());
  auto const at_share = [&](double share) { return values[static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * (n - 1))]; };
  double const half = 0.5 / std::sqrt(n);
  return {at_share(0.5), (at_share(0.5 + half) - at_share(0.5 - half)) / 2};
}

CsvRows measured_cell(LengthCell const& cell, double trained, Index scores, Stream const& stream) {
  double const factor = factor_of(cell.variant, static_cast<double>(cell.keys), trained);
  std::array<std::vector<double>, length_quantities.size()> values;
  Index const at_once = std::max<Index>(1, 200'000 / cell.keys), rows = std::max<Index>(200, scores / cell.keys);
  for (Index done = 0; done < rows; done += at_once) {
    stop_if_interrupted();
    auto all = drawn_scores(cell, at_once, stream.child(static_cast<std::uint64_t>(done)));
    for (double& score : all) score *= factor;
    for (auto row = all.begin(); row != all.end(); row += cell.keys) {
      auto const found = measured_row(cell.variant, {row, row + cell.keys});
      for (std::size_t q = 0; q < found.size(); ++q) values[q].push_back(found[q]);
    }
  }
  std::array<std::optional<double>, length_quantities.size()> theory;
  bool const softmax = cell.variant == "softmax" || cell.variant == "log_length" || cell.variant == "yarn";
  if (cell.scores != "sphere" && softmax) {  // a shift of all scores changes no weight
    double const deviation = factor * cell.sigma;
    auto const expected = softmax_of_normal_logits(deviation * deviation * (1 - cell.correlation), {cell.keys}).front();
    theory = {expected.trace, expected.frobenius_squared, expected.entropy, expected.max_weight, std::nullopt};
  }
  CsvRows result;
  for (std::size_t q = 0; q < values.size(); ++q) {
    auto const found = length_quantities[q] == std::string("gap_function") ? measured_median(values[q]) : measured_mean(values[q]);
    result.push_back({cell.scores, fmt::format("{}", cell.keys), csv_number(cell.sigma), csv_number(cell.correlation),
                      fmt::format("{}", cell.width), length_quantities[q], csv_number(found.mean), csv_number(found.standard_error),
                      csv_number(theory[q]), cell.variant});
  }
  return result;
}

/// A trained head: its last 16 queries in each sequence, with the standard deviation of their scores.
CsvRows measured_head(TrainedHead const& head) {
  std::map<std::string, std::vector<double>> by_sequence;
  BlockShape const shape = head.shape(head.length);
  double variance = 0;
  for (ProductBlock block : head.sequences) {
    multiply(block, shape);
    std::map<std::string, double> sums;
    for (Index i = shape.queries - 16; i < shape.queries; ++i) {
      std::vector<double> scores;
      for (Index j = 0; j < (shape.place ? std::min(shape.keys, *shape.place + i + 1) : shape.keys); ++j)
        scores.push_back(static_cast<double>(at(block.products, j * shape.queries + i)) / std::sqrt(static_cast<double>(shape.width)));
      variance += std::pow(describe(scores).deviation, 2) / 16 / static_cast<double>(head.sequences.size());
      auto const found = measured_row("softmax", scores);
      for (std::size_t q = 0; q < found.size(); ++q) sums[length_quantities[q]] += found[q] / 16;
    }
    for (auto const& [quantity, mean] : sums) by_sequence[quantity].push_back(mean);
  }
  CsvRows rows;
  for (auto const& [quantity, values] : by_sequence) {
    auto const found = measured_mean(values);
    rows.push_back({"trained " + head.name, fmt::format("{}", head.length), csv_number(std::sqrt(variance)), "0.0",
                    fmt::format("{}", head.width), quantity, csv_number(found.mean), csv_number(found.standard_error), "", "softmax"});
  }
  return rows;
}

/// The grid: normal scores over σ; equicorrelated ones at two σ; the sphere at σ = 1; variants of softmax at one σ.
std::vector<LengthCell> cells_of(SoftmaxLengthSettings const& settings) {
  std::vector<LengthCell> cells;
  for (double const n : settings.keys) {
    auto const keys = static_cast<Index>(n);
    for (double const sigma : settings.sigma) cells.push_back({"normal", keys, sigma, 0, 0});
    for (double const rho : settings.correlation)
      for (double const sigma : {2.0, 7.0}) cells.push_back({"equicorrelated", keys, sigma, rho, 0});
    for (double const width : settings.width) cells.push_back({"sphere", keys, 1, 0, static_cast<Index>(width)});
    for (auto const& variant : settings.variants) cells.push_back({"normal", keys, settings.variants_at, 0, 0, variant});
  }
  return cells;
}

double number_at(CsvLine const& line, char const* column) { return line[column].empty() ? std::nan("") : line.number(column); }

StudyResult length_report(CsvRows const& rows) {
  StudyResult result{
      .csv = {{"scores", "keys", "sigma", "correlation", "width", "quantity", "mean", "standard_error", "theory", "variant"}},
      .tables = {},
      .sentences = {},
      .figures = {}};
  result.csv.insert(result.csv.end(), rows.begin(), rows.end());
  double worst = 0;
  std::size_t compared = 0;
  StudyTable jacobian{"‖J‖² of normal scores, and its largest value over σ", {{"keys", "σ", "‖J‖²", "± standard error", "exact"}}};
  std::map<double, std::array<std::vector<double>, 3>> on_sphere;  // by width: logarithms of n and Λ, and the errors of the latter
  std::map<double, std::pair<double, double>> peaks;               // n: ‖J‖², σ
  for (auto const& line : csv_lines(result.csv, "results.csv")) {
    double const mean = line.number("mean"), error = line.number("standard_error"), theory = number_at(line, "theory"),
                 n = line.number("keys");
    if (!std::isnan(theory) && error > 0) worst = std::max(worst, std::abs(mean - theory) / error), ++compared;
    if (line["scores"] == "sphere" && line["quantity"] == "gap_function") {
      auto& [x, y, errors] = on_sphere[line.number("width")];
      x.push_back(std::log(n)), y.push_back(std::log(mean)), errors.push_back(error / mean);
    }
    if (line["variant"] != "softmax" || line["scores"] != "normal" || line["quantity"] != "jacobian_norm_squared") continue;
    jacobian.rows.push_back(
        {line["keys"], line["sigma"], fmt::format("{:.5f}", mean), fmt::format("{:.5f}", error), fmt::format("{:.5f}", theory)});
    if (mean > peaks[n].first) peaks[n] = {mean, line.number("sigma")};
  }
  result.sentences.push_back(
      fmt::format("{} cells beside their exact expectations at finite n: the furthest lies {:.1f} standard errors off", compared, worst));
  for (auto const& [n, peak] : peaks)
    result.sentences.push_back(fmt::format(
        "{:.0f} keys: ‖J‖² is largest, {:.4f}, at σ = {} of those measured; twice the critical σ is {:.2f}, and 1/√d starts at 1", n,
        peak.first, peak.second, 2 * std::sqrt(2 * std::log(n))));
  StudyTable exponents{"Gap function on the sphere: exponent over n", {{"width d", "measured", "± standard error", "2/(d − 1)"}}};
  for (auto const& [width, points] : on_sphere) {
    if (points[0].size() < 2) continue;
    auto const [slope, error] = slope_with_error(points[0], points[1], points[2]);
    exponents.rows.push_back(
        {fmt::format("{:.0f}", width), fmt::format("{:.3f}", slope), fmt::format("{:.3f}", error), fmt::format("{:.3f}", 2 / (width - 1))});
  }
  result.tables = {jacobian, exponents};
  result.figures = {{"worst_deviation", worst}};
  return result;
}

Study softmax_length(SoftmaxLengthSettings const& settings, StudyContext const& context) {
  Study study;
  Stream const stream(context.seed, "softmax_length");
  Index const scores = settings.quick ? settings.scores / 10 : settings.scores;
  for (auto const& cell : cells_of(settings)) {
    auto const name = fmt::format("{}, {} keys, σ {:g}, ρ {:g}, width {}{}", cell.scores, cell.keys, cell.sigma, cell.correlation,
                                  cell.width, cell.variant == "softmax" ? "" : ", " + cell.variant);
    study.cells.push_back(
        {name, [=, trained = settings.keys.front(), own = stream.child(name)] { return measured_cell(cell, trained, scores, own); }});
  }
  if (settings.run)
    for (auto const& head : trained_heads(*settings.run, 16, context, study.read))
      study.cells.push_back({head.name, [head] { return measured_head(head); }});
  study.report = length_report;
  return study;
}

/// A quantity of normal scores against m = √(2 log n)/σ: dots with the exact curve by number of keys, and the limit.
Panel against_criticality(StudyRecord const& record, std::string const& quantity, std::string const& title) {
  std::map<double, FigureLayer> dots, lines;
  FigureLayer heads{As::intervals, {}, look_of(6), "trained heads"};
  std::set<double> all;
  for (auto const& line : csv_lines(record.csv, record.folder / "results.csv")) {
    bool const head = line["scores"].starts_with("trained");
    if ((line["scores"] != "normal" && !head) || line["quantity"] != quantity || line["variant"] != "softmax") continue;
    double const n = line.number("keys"), m = std::sqrt(2 * std::log(n)) / line.number("sigma");
    double const mean = line.number("mean"), error = line.number("standard_error");
    if (head) {
      if (std::isfinite(m)) heads.points.push_back({m, mean, mean - 2 * error, mean + 2 * error});
      continue;
    }
    dots[n].points.push_back({m, mean, mean - 2 * error, mean + 2 * error});
    lines[n].points.push_back(CurvePoint::bare(m, number_at(line, "theory")));
    all.insert(m);
  }
  Panel panel{.title = title};
  FigureLayer limit{As::line, {}, limit_look(), "n → ∞"};
  for (double m = 0.02; m < 1; m += 0.02) {
    double const value = quantity == "trace_jacobian"          ? m
                         : quantity == "jacobian_norm_squared" ? m * (1 - m) / 3
                                                               : boost::math::digamma(1.0) - boost::math::digamma(1 - m);
    if (quantity != "entropy" || m < 0.95) limit.points.push_back(CurvePoint::bare(m, value));
  }
  panel.layers.push_back(limit);
  std::size_t number = 0;
  for (auto& [n, layer] : dots) {
    auto& line = lines[n];
    std::ranges::sort(line.points, {}, &CurvePoint::x);
    line.as = As::line, line.look = solid_look(number), line.name = fmt::format("{:.0f} keys", n);
    layer.as = As::intervals, layer.look = solid_look(number++);
    panel.layers.push_back(line), panel.layers.push_back(layer);
  }
  if (!heads.points.empty()) panel.layers.push_back(heads);
  panel.y = axis_over(panel.layers);
  return panel;
}

/// What softmax and its variants pass, by the number of keys.
Panel of_variants(StudyRecord const& record, std::string const& quantity, std::string const& title, bool tens) {
  auto const lines = csv_lines(record.csv, record.folder / "results.csv");
  std::string sigma;
  for (auto const& line : lines)
    if (line["variant"] != "softmax") sigma = line["sigma"];
  std::map<std::string, FigureLayer> layers;
  for (auto const& line : lines) {
    if (line["scores"] != "normal" || line["sigma"] != sigma || line["quantity"] != quantity) continue;
    double const mean = line.number("mean"), error = line.number("standard_error");
    layers[line["variant"]].points.push_back({line.number("keys"), mean, mean - 2 * error, mean + 2 * error});
  }
  Panel panel{.title = title};
  std::size_t number = 0;
  for (auto& [name, layer] : layers) {
    layer.as = As::joined_intervals, layer.look = look_of(number++), layer.name = name;
    panel.layers.push_back(layer);
  }
  panel.y = axis_over(panel.layers, tens);
  return panel;
}

std::vector<StudyPart> length_page(StudyRecord const& record) {
  Figure figure{
      .name = "criticality",
      .title = "Normal scores: what softmax passes, by m = √(2 log n)/σ",
      .caption =
          "Dots: measured, ± 2 standard errors; lines: exact at finite n; grey: the limit of many keys (m, m(1 − m)/3, ψ(1) − "
          "ψ(1 − m)). Small m: large scores.",
      .panels = {against_criticality(record, "trace_jacobian", "tr J"), against_criticality(record, "jacobian_norm_squared", "‖J‖²"),
                 against_criticality(record, "entropy", "entropy (nat)")},
      .across = 3};
  share_x(figure, "m", Ticks::twos);
  Figure gap{
      .name = "gap_function", .title = "Gap function: the sharpness at which softmax selects", .caption = "Median over rows, by scores."};
  Panel panel{.title = "median of Λ"};
  std::map<std::string, FigureLayer> layers;
  for (auto const& line : csv_lines(record.csv, record.folder / "results.csv")) {
    if (line["quantity"] != "gap_function" || line["variant"] != "softmax" ||
        (line["scores"] != "sphere" && line["sigma"] != "1.0" && line["sigma"] != "1"))
      continue;
    auto const name = line["scores"] == "sphere" ? fmt::format("sphere, d = {}", line["width"]) : "normal, σ = 1";
    double const mean = line.number("mean"), error = line.number("standard_error");
    layers[name].points.push_back({line.number("keys"), mean, mean - 2 * error, mean + 2 * error});
  }
  std::size_t number = 0;
  for (auto& [name, layer] : layers) {
    layer.as = As::joined_intervals, layer.look = look_of(number++), layer.name = name;
    panel.layers.push_back(layer);
  }
  StudyPart part{.title = "By the number of keys", .html = "", .figures = {figure}};
  if (!layers.empty()) {
    panel.y = axis_over(panel.layers, true);
    gap.panels = {panel};
    share_x(gap, "keys", Ticks::twos);
    part.figures.push_back(gap);
  }
  Figure variants{
      .name = "variants",
      .title = "Softmax and its variants as keys become more",
      .caption = "Normal scores; scales as trained with the first number of keys. log_length is ssmax's scale, too.",
      .panels = {of_variants(record, "jacobian_norm_squared", "‖J‖²", true), of_variants(record, "max_weight", "largest weight", false)},
      .across = 2};
  if (variants.panels[0].layers.empty()) return {part};
  share_x(variants, "keys", Ticks::twos);
  part.figures.push_back(variants);
  return {part};
}

Declared<StudyKind> const softmax_length_study{study_kind(
    "softmax_length", "saturation of softmax by the number of keys: independent and correlated scores, and the sphere, beside closed forms",
    softmax_length, length_page)};

}  // namespace

}  // namespace heed
