// How one untrained attention layer draws tokens together: with queries, keys and values the tokens themselves, equally correlated, and
// scores γ log n · ⟨x, y⟩, the mean inner product after the layer goes from 1 to what it was before as γ passes γ_c = 1/(1 − ρ) (Chen, Lin,
// Polyanskiy & Rigollet 2025, arXiv 2510.05554); and the scale of scores at which softmax selects, which grows as log n here and as √log n
// for independent scores (arXiv 2505.24333).

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/report/figure.hpp"
#include "experiments/study/samples.hpp"
#include "experiments/study/study.hpp"

namespace heed {

namespace {

struct ContractionSettings : Settings {
  std::vector<double> keys{64, 512, 4096}, width{2, 32, 512}, correlation{0.25, 0.5, 0.75}, sharpness{0.8, 1, 1.2};
  Index queries = 256, draws = 16;

  std::vector<Field> fields() override {
    return {field(&keys, "keys", "numbers of tokens n, integers").in(4, 65536).integers(),
            field(&width, "width", "widths of tokens, integers").in(2, 4096).integers(),
            field(&correlation, "correlation", "ρ: tokens are √ρ z₀ + √(1 − ρ) z, normalised").in(0, 0.99),
            field(&sharpness, "sharpness", "γ/γ_c: scores are γ log n ⟨x, y⟩, γ_c = 1/(1 − ρ)").in(0.01, 100),
            field(&queries, "queries", "tokens that are queries, too; at most n").in(4, 65536),
            field(&draws, "draws", "draws of tokens").in(2, 10'000)};
  }
  std::optional<std::string> contradiction() override { return keys.empty() ? std::optional<std::string>("keys: is empty") : std::nullopt; }
};

/// A point of the grid; width 0: independent normal scores instead of products of tokens.
struct ContractionCell {
  Index keys, width;
  double correlation;
};

/// The mean inner product of different rows of x [n, d], which have length 1: (‖Σ x‖² − n)/(n(n − 1)).
double mean_product(Tensor const& x) {
  Tensor const whole = sum(x, {0});
  auto const n = static_cast<double>(x.shape()[0]);
  return (sum(whole * whole).item() - n) / (n * (n - 1));
}

/// Rows of x [n, d], each of length 1.
Tensor normalised(Tensor const& x) { return x / sqrt(sum(x * x, {1}, true)); }

/// What mean_product() is after the layer, of n tokens with the same product ρ of any two: each keeps the weight w = 1/(1 + (n − 1)
/// e^(−β(1 − ρ))) of itself and gives b to each other.
double product_after(double rho, double beta, double n) {
  double const w = 1 / (1 + (n - 1) * std::exp(-beta * (1 - rho))), b = (1 - w) / (n - 1);
  double const square = w * w + 2 * w * b * (n - 1) * rho + b * b * ((n - 1) + (n - 1) * (n - 2) * rho);
  double const others = (n - 2) + ((n - 1) * (n - 1) - (n - 2)) * rho;  // products of all but i with all but j
  return (w * w * rho + 2 * w * b * (1 + (n - 2) * rho) + b * b * others) / square;
}

/// The factor of products [queries, n] at which the mean of the rows' largest weights is ½, by bisection.
double critical_factor(Tensor const& products) {
  double low = 0, high = 1;
  auto const selects = [&](double beta) { return mean(max(softmax(beta * products, -1), {1})).item() > 0.5; };
  while (!selects(high) && high < 1e6) high *= 2;
  for (int step = 0; step < 20; ++step) {
    double const middle = (low + high) / 2;
    (selects(middle) ? high : low) = middle;
  }
  return (low + high) / 2;
}

CsvRows contraction_cell(ContractionSettings const& settings, ContractionCell const& cell, Stream const& stream) {
  NoGrad const plain;
  auto const n = static_cast<double>(cell.keys);
  std::map<double, std::vector<double>> after, expected;
  std::vector<double> critical;
  for (Index draw = 0; draw < settings.draws; ++draw) {
    stop_if_interrupted();
    Stream const own = stream.child(static_cast<std::uint64_t>(draw));
    Index const queries = std::min(settings.queries, cell.keys);
    if (cell.width == 0) {
      critical.push_back(critical_factor(Tensor::normal({queries, cell.keys}, own.child("scores"), DType::float32)));
      continue;
    }
    Tensor const own_part = Tensor::normal({cell.keys, cell.width}, own.child("own"), DType::float32);
    Tensor const shared = Tensor::normal({1, cell.width}, own.child("shared"), DType::float32);
    Tensor const x = normalised(std::sqrt(cell.correlation) * shared + std::sqrt(1 - cell.correlation) * own_part);
    Tensor const products = matmul(slice(x, 0, 0, queries), x, false, true);
    double const rho = mean_product(x);
    for (double const sharpness : settings.sharpness) {
      double const beta = sharpness * std::log(n) / (1 - rho);
      after[sharpness].push_back(mean_product(normalised(matmul(softmax(beta * products, -1), x))));
      expected[sharpness].push_back(product_after(rho, beta, n));
    }
    critical.push_back(critical_factor(products));
  }
  CsvRows rows;
  auto const add = [&](double sharpness, char const* quantity, std::vector<double> const& values, std::optional<double> theory) {
    auto const found = measured_mean(values);
    rows.push_back({cell.width == 0 ? "normal" : "tokens", fmt::format("{}", cell.keys), csv_number(std::log(n)),
                    csv_number(cell.correlation), fmt::format("{}", cell.width), csv_number(sharpness), quantity, csv_number(found.mean),
                    csv_number(found.standard_error), csv_number(theory)});
  };
  for (auto const& [sharpness, values] : after) add(sharpness, "inner_product", values, measured_mean(expected[sharpness]).mean);
  add(0, "critical_factor", critical, std::nullopt);
  return rows;
}

StudyResult contraction_report(CsvRows const& rows) {
  auto result =
      result_of({"scores", "keys", "log_keys", "correlation", "width", "sharpness", "quantity", "mean", "standard_error", "theory"}, rows);
  result.tables = {{"Mean inner product after the layer",
                    {{"keys", "ρ", "width", "γ/γ_c", "measured", "± standard error", "equal products", "n, d → ∞"}}}};
  std::map<std::string, std::array<std::vector<double>, 3>> critical;  // by kind: log log n, log β, its error
  for (auto const& line : csv_lines(result.csv, "results.csv")) {
    double const mean = line.number("mean"), error = line.number("standard_error"), rho = line.number("correlation");
    if (line["quantity"] == "critical_factor") {
      auto& [x, y, errors] =
          critical[line["scores"] == "normal" ? "independent normal scores"
                                              : fmt::format("tokens of width {}, ρ = {}", line["width"], line["correlation"])];
      x.push_back(std::log(line.number("log_keys"))), y.push_back(std::log(mean)), errors.push_back(error / mean);
      continue;
    }
    double const sharpness = line.number("sharpness"), limit = sharpness < 1 ? 1 : sharpness > 1 ? rho : 4 * rho / (1 + 3 * rho);
    result.tables[0].rows.push_back({line["keys"], line["correlation"], line["width"], line["sharpness"], fmt::format("{:.4f}", mean),
                                     fmt::format("{:.4f}", error), fmt::format("{:.4f}", line.number("theory")),
                                     fmt::format("{:.4f}", limit)});
  }
  for (auto const& [kind, points] : critical) {
    if (points[0].size() < 2) continue;
    auto const [slope, error] = slope_with_error(points[0], points[1], points[2]);
    result.sentences.push_back(
        fmt::format("{}: the scale at which softmax selects (mean largest weight ½) goes as (log n)^{:.3f} ± {:.3f}", kind, slope, error));
  }
  return result;
}

Study contraction(ContractionSettings const& settings, StudyContext const& context) {
  Study study;
  Stream const stream(context.seed, "contraction");
  for (double const n : settings.keys) {
    std::vector<ContractionCell> cells{{static_cast<Index>(n), 0, 0}};
    for (double const width : settings.width)
      for (double const rho : settings.correlation) cells.push_back({static_cast<Index>(n), static_cast<Index>(width), rho});
    for (auto const& cell : cells) {
      auto const name = fmt::format("{} tokens of width {}, ρ {:g}", cell.keys, cell.width, cell.correlation);
      study.cells.push_back({name, [&settings, cell, own = stream.child(name)] { return contraction_cell(settings, cell, own); }});
    }
  }
  study.report = contraction_report;
  return study;
}

/// A panel per ρ, a line per width: the mean inner product after the layer of the most tokens, by γ/γ_c, beside equal products.
std::vector<StudyPart> contraction_page(StudyRecord const& record) {
  auto const lines = csv_lines(record.csv, record.folder / "results.csv");
  double most = 0;
  for (auto const& line : lines) most = std::max(most, line.number("keys"));
  std::map<double, std::map<double, std::pair<Curve, Curve>>> curves;  // by ρ and width: measured, equal products
  for (auto const& line : lines) {
    if (line["quantity"] != "inner_product" || line.number("keys") != most) continue;
    auto& [measured, equal] = curves[line.number("correlation")][line.number("width")];
    double const x = line.number("sharpness");
    measured.push_back(point_at(line, x));
    equal.push_back(CurvePoint::bare(x, line.number("theory")));
  }
  Figure figure{
      .name = "contraction",
      .title = "Mean inner product of tokens after one layer",
      .caption = fmt::format("{:.0f} tokens; dots: measured, ± 2 standard errors; lines: all products equal to their mean.", most),
      .across = 3};
  for (auto const& [rho, by_width] : curves) {
    Panel panel{.title = fmt::format("ρ = {:g}", rho)};
    std::size_t number = 0;
    for (auto const& [width, pair] : by_width) {
      panel.layers.push_back({As::line, pair.second, solid_look(number), fmt::format("width {:.0f}", width)});
      panel.layers.push_back({As::intervals, pair.first, solid_look(number++)});
    }
    panel.y = axis_over(panel.layers);
    figure.panels.push_back(std::move(panel));
  }
  if (figure.panels.empty()) return {};
  share_x(figure, "γ/γ_c", Ticks::twos);
  return {{.title = "By the sharpness of the scores", .html = "", .figures = {figure}}};
}

Declared<StudyKind> const contraction_study{study_kind(
    "contraction", "how one attention layer draws tokens together, and the scale at which softmax selects, by the number of tokens",
    contraction, contraction_page)};

}  // namespace

}  // namespace heed
