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
#include "experiments/study/study.hpp"

namespace heed {

namespace {

struct ContractionSettings : Settings {
  std::vector<double> keys{64, 512, 4096}, width{2, 32, 512}, correlation{0.25, 0.5, 0.75}, sharpness{0.8, 1, 1.2};
  Index queries = 256, draws = 16;

  std::vector<Field> fields() override {
    return {field(&keys, "keys", "numbers of tokens n, integers").in(4, 65536).integers().filled(),
            field(&width, "width", "widths of tokens, integers").in(2, 4096).integers(),
            field(&correlation, "correlation", "ρ: tokens are √ρ z₀ + √(1 − ρ) z, normalised").in(0, 0.99),
            field(&sharpness, "sharpness", "γ/γ_c: scores are γ log n ⟨x, y⟩, γ_c = 1/(1 − ρ)").in(0.01, 100),
            field(&queries, "queries", "tokens that are queries, too; at most n").in(4, 65536),
            field(&draws, "draws", "draws of tokens").in(2, 10'000)};
  }
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
  Index const queries = std::min(settings.queries, cell.keys);
  std::map<double, std::vector<double>> after, expected;  // by sharpness
  std::vector<double> critical;
  for (Index draw = 0; draw < settings.draws; ++draw) {
    stop_if_interrupted();
    auto const normal = [&, own = stream.child(static_cast<std::uint64_t>(draw))](char const* name, Shape const& shape) {
      return Tensor::normal(shape, own.child(name), DType::float32);
    };
    if (cell.width == 0) {
      critical.push_back(critical_factor(normal("scores", {queries, cell.keys})));
      continue;
    }
    Tensor const x = normalised(std::sqrt(cell.correlation) * normal("shared", {1, cell.width}) +
                                std::sqrt(1 - cell.correlation) * normal("own", {cell.keys, cell.width}));
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
    rows.push_back(line_of(cell.width == 0 ? "normal" : "tokens", cell.keys, std::log(n), cell.correlation, cell.width, sharpness, quantity,
                           csv_number(found.mean), csv_number(found.standard_error), csv_number(theory)));
  };
  for (auto const& [sharpness, values] : after) add(sharpness, "inner_product", values, measured_mean(expected[sharpness]).mean);
  add(0, "critical_factor", critical, std::nullopt);
  return rows;
}

StudyResult contraction_report(CsvRows const& rows) {
  auto result =
      result_of({"scores", "keys", "log_keys", "correlation", "width", "sharpness", "quantity", "mean", "standard_error", "theory"}, rows);
  auto const lines = csv_lines(result.csv, "results.csv");
  StudyTable table{"Mean inner product after the layer", {{"tokens", "measured", "± standard error", "equal products", "n, d → ∞"}}};
  for (auto const& line : lines_with(lines, {{"quantity", "inner_product"}})) {
    double const sharpness = line.number("sharpness"), rho = line.number("correlation");
    double const limit = sharpness < 1 ? 1 : sharpness > 1 ? rho : 4 * rho / (1 + 3 * rho);
    auto& row = table.rows.emplace_back(CsvRows::value_type{
        fmt::format("{} of width {}, ρ = {}, γ/γ_c = {}", line["keys"], line["width"], line["correlation"], line["sharpness"])});
    for (double const value : {line.number("mean"), line.number("standard_error"), line.number("theory"), limit})
      row.push_back(fmt::format("{:.4f}", value));
  }
  auto const kind = [](CsvLine const& line) {
    return line["scores"] == "normal" ? "independent normal scores"
                                      : fmt::format("tokens of width {}, ρ = {}", line["width"], line["correlation"]);
  };
  for (auto const& group : grouped(lines_with(lines, {{"quantity", "critical_factor"}}), kind))
    if (group.lines.size() > 1) {
      auto const [slope, error] = trend_over(group.lines, "log_keys", true);
      result.sentences.push_back(fmt::format(
          "{}: the scale at which softmax selects (mean largest weight ½) goes as (log n)^{:.2f} ± {:.2f} (standard error), n = {} … {}",
          group.name, slope, error, group.lines.front()["keys"], group.lines.back()["keys"]));
    }
  result.tables = {table};
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
  auto const most = fmt::format("{}", std::ranges::max(numbers_of(lines, "keys")));
  Figure figure{
      .name = "contraction",
      .title = "Mean inner product of tokens after one layer",
      .caption = fmt::format("{} tokens; dots: measured, ± 2 standard errors; lines: as if all products were equal to their mean.", most),
      .across = 3};
  for (auto const& [rho, some] : grouped(lines_with(lines, {{"quantity", "inner_product"}, {"keys", most}}), by("correlation", "ρ = {}")))
    figure.panels.push_back(panel_of(rho, curves_beside_theory(grouped(some, by("width", "width {}")), over("sharpness"))));
  if (figure.panels.empty()) return {};
  share_x(figure, "γ/γ_c", Ticks::even);
  return {{.title = "By the sharpness of the scores", .html = "", .figures = {figure}}};
}

Declared<StudyKind> const contraction_study{study_kind(
    "contraction", "how one attention layer draws tokens together, and the scale at which softmax selects, by the number of tokens",
    contraction, contraction_page)};

}  // namespace

}  // namespace heed
