// What softmax does to gradients as the number of keys grows: n scores of standard deviation σ, independent, equicorrelated, or products
// with keys on a sphere; the Jacobian, the entropy and the largest weight beside their exact expectations at finite n and the limits of the
// random energy model; and the gap function, by which one law covers √log n, log n and powers of n.

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <span>

#include <boost/math/special_functions/digamma.hpp>
#include <fmt/format.h>

#include "experiments/ablation/scaling/quadrature.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/study/samples.hpp"
#include "experiments/study/study.hpp"

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
    return {field(&keys, "keys", "numbers of keys, integers").in(4, 65536).integers().filled(),
            field(&sigma, "sigma", "standard deviations of the scores").in(0.01, 100),
            field(&correlation, "correlation", "correlations of equicorrelated scores").in(0, 0.99),
            field(&width, "width", "dimensions of the space of the sphere, integers").in(2, 4096).integers(),
            field(&variants, "variants", "beside softmax: other scales, as trained with the first number of keys, and other aligns")
                .one_of({"log_length", "yarn", "scale_invariant", "softmax1", "sigmoid", "entmax15"}),
            field(&variants_at, "variants_at", "standard deviation of the scores of variants").in(0.01, 100),
            field(&run, "run", "a trained run: its heads on its validation data, scores q·k/√d of the last queries, too"),
            field(&scores, "scores", "scores that are drawn per cell").in(10'000, 1e10),
            field(&quick, "quick", "a tenth of the scores")};
  }
};

// ---------------------------------------------------------------- a row of scores

/// What is measured of it.
constexpr std::array length_quantities{"trace_jacobian", "jacobian_norm_squared", "entropy", "max_weight", "gap_function"};

/// Scale-invariant attention (2505.17083): a_t s + m_t at distance t, a_t = √(2 [log(t/τ + 1) − log α + β/α]), m_t = −a_t² + β/α, α = β =
/// e^½, τ = 10.
void make_scale_invariant(std::span<double> scores) {
  for (std::size_t t = 0; t < scores.size(); ++t) {
    double const squared = 2 * (std::log(static_cast<double>(t) / 10 + 1) - 0.5 + 1);
    scores[t] = std::sqrt(squared) * scores[t] - squared + 1;
  }
}

/// A row's weights p, and shares s with J = diag(s) − c s sᵀ.
struct RowWeights {
  std::vector<double> weights, shares;
  double c = 1;
};

/// The τ of 1.5-entmax, whose weights are max(e/2 − τ, 0)², of scores in falling order, relative to the first.
double entmax_threshold(std::vector<double> const& scores) {
  double sum = 0, squares = 0, tau = 0;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    double const z = (scores[k] - scores.front()) / 2, n = static_cast<double>(k + 1);
    sum += z, squares += z * z;
    double const rest = (1 - (squares - sum * sum / n)) / n;
    if (rest < 0 || sum / n - std::sqrt(rest) > z) break;
    tau = sum / n - std::sqrt(rest);
  }
  return tau;
}

/// Of scores in falling order.
RowWeights weights_of(std::string const& variant, std::vector<double> const& scores) {
  RowWeights row;
  if (variant == "entmax15") {
    double const tau = entmax_threshold(scores);
    row.shares = mapped(scores, [&](double score) { return std::max(0.0, (score - scores.front()) / 2 - tau); });
    row.weights = mapped(row.shares, [](double root) { return root * root; });
    row.c = 1 / std::accumulate(row.shares.begin(), row.shares.end(), 0.0);
    return row;
  }
  if (variant == "sigmoid") {
    auto const n = static_cast<double>(scores.size());
    row.weights = mapped(scores, [&](double score) { return 1 / (1 + n * std::exp(-score)); });
    row.shares = mapped(row.weights, [](double p) { return p * (1 - p); });
    row.c = 0;
    return row;
  }
  double const top = variant == "softmax1" ? std::max(scores.front(), 0.0) : scores.front();
  row.weights = mapped(scores, [&](double score) { return std::exp(score - top); });
  double const total = std::accumulate(row.weights.rbegin(), row.weights.rend(), variant == "softmax1" ? std::exp(-top) : 0.0);
  for (double& weight : row.weights) weight /= total;
  row.shares = row.weights;
  return row;
}

/// The factor of all scores of a row of n keys that was trained with n₀: log n/log n₀ (ssmax; Chiang and Cholak 2022), and YaRN's (Peng et
/// al. 2023), the square of 1 + 0.1 log(n/n₀); 1 for other variants.
double factor_of(std::string const& variant, double n, double trained) {
  if (variant == "log_length") return std::log(n) / std::log(trained);
  return variant == "yarn" ? std::pow(1 + 0.1 * std::log(n / trained), 2) : 1;
}

/// The quantities of one row, in their order: of the Jacobian of the weights by the scores, the weights' entropy −Σ p log p and largest,
/// and the scores' gap function. `variant`: softmax, scale_invariant, softmax1, sigmoid or entmax15; others as softmax.
std::array<double, length_quantities.size()> measured_row(std::string const& variant, std::vector<double> scores) {
  if (variant == "scale_invariant") make_scale_invariant(scores);
  std::ranges::sort(scores, std::greater());
  auto const [weights, shares, c] = weights_of(variant, scores);
  double sum = 0, squares = 0, cubes = 0, entropy = 0;
  for (double const s : shares) sum += s, squares += s * s, cubes += s * s * s;
  for (double const p : weights) entropy -= p > 0 ? p * std::log(p) : 0;
  return {sum - c * squares, squares - 2 * c * cubes + c * c * squares * squares, entropy, weights.front(), gap_function(scores)};
}

// ---------------------------------------------------------------- the cells

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
  auto const drawn = [&](char const* name, Index count) {
    std::vector<float> normal(static_cast<std::size_t>((count + 31) / 32 * 32));
    draw(Law::gaussian, stream.child(name), normal);
    return normal;
  };
  bool const sphere = cell.scores == "sphere";
  Index const width = sphere ? cell.width : 1;
  auto const normal = drawn("scores", rows * cell.keys * width), shared = drawn("shared", rows);
  std::vector<double> scores;
  for (Index i = 0; i < rows * cell.keys; ++i) {
    auto const* const key = &at(normal, i * width);
    double squares = 0;
    for (Index c = 0; c < width; ++c) squares += static_cast<double>(key[c]) * key[c];
    scores.push_back(cell.sigma *
                     (sphere ? key[0] / std::sqrt(squares)
                             : std::sqrt(cell.correlation) * at(shared, i / cell.keys) + std::sqrt(1 - cell.correlation) * key[0]));
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
  CsvRows lines;
  for (std::size_t q = 0; q < values.size(); ++q) {
    auto const found = length_quantities[q] == std::string("gap_function") ? measured_median(values[q]) : measured_mean(values[q]);
    lines.push_back(line_of(cell.scores, cell.keys, cell.sigma, cell.correlation, cell.width, length_quantities[q], csv_number(found.mean),
                            csv_number(found.standard_error), csv_number(theory[q]), cell.variant));
  }
  return lines;
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
      for (Index j = 0; j < (shape.first_position ? std::min(shape.keys, *shape.first_position + i + 1) : shape.keys); ++j)
        scores.push_back(static_cast<double>(at(block.products, j * shape.queries + i)) / std::sqrt(static_cast<double>(shape.width)));
      variance += std::pow(describe(scores).deviation, 2) / 16 / static_cast<double>(head.sequences.size());
      auto const found = measured_row("softmax", scores);
      for (std::size_t q = 0; q < found.size(); ++q) sums[length_quantities[q]] += found[q] / 16;
    }
    for (auto const& [quantity, mean] : sums) by_sequence[quantity].push_back(mean);
  }
  return mapped(by_sequence, [&](auto const& each) {
    auto const [mean, error, theory] = measured_mean(each.second);
    return line_of("trained " + head.name, head.length, std::sqrt(variance), "0.0", head.width, each.first, csv_number(mean),
                   csv_number(error), "", "softmax");
  });
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

StudyResult length_report(CsvRows const& rows) {
  auto result =
      result_of({"scores", "keys", "sigma", "correlation", "width", "quantity", "mean", "standard_error", "theory", "variant"}, rows);
  auto const lines = csv_lines(result.csv, "results.csv");
  double worst = 0;
  std::size_t compared = 0;
  for (auto const& line : lines) {
    double const error = line.number("standard_error");
    if (line["theory"].empty() || !(error > 0)) continue;
    worst = std::max(worst, std::abs(line.number("mean") - line.number("theory")) / error);
    ++compared;
  }
  if (compared > 0)
    result.sentences = {fmt::format("{} numbers beside their exact expectations at finite n: the furthest lies {:.1f} standard errors off",
                                    compared, worst)};

  StudyTable jacobian{"‖J‖² of normal scores", {{"scores", "‖J‖²", "± standard error", "exact"}}};
  for (auto const& [keys, of_keys] :
       grouped(lines_with(lines, {{"variant", "softmax"}, {"scores", "normal"}, {"quantity", "jacobian_norm_squared"}}), by("keys"))) {
    for (auto const& line : of_keys)
      jacobian.rows.push_back({fmt::format("{} keys, σ = {}", keys, line["sigma"]), fmt::format("{:.4g}", line.number("mean")),
                               fmt::format("{:.3g}", line.number("standard_error")), fmt::format("{:.4g}", line.number("theory"))});
    auto const peak = *std::ranges::max_element(of_keys, {}, [](CsvLine const& line) { return line.number("theory"); });
    result.sentences.push_back(
        fmt::format("{} keys: of the σ measured, the exact ‖J‖² is largest at {}, {:.4f}; twice the critical σ is {:.2f}, and with 1/√d σ "
                    "starts at 1",
                    keys, peak["sigma"], peak.number("theory"), 2 * std::sqrt(2 * std::log(peak.number("keys")))));
  }
  StudyTable exponents{"Gap function on the sphere: exponent over n",
                       {{"width d", "measured", "± standard error", "2/(d − 1) if log n ≫ d"}}};
  for (auto const& [width, of_width] : grouped(lines_with(lines, {{"scores", "sphere"}, {"quantity", "gap_function"}}), by("width"))) {
    if (of_width.size() < 2) continue;
    auto const [slope, error] = trend_over(of_width, "keys", true);
    exponents.rows.push_back({width, fmt::format("{:.3f}", slope), fmt::format("{:.3f}", error),
                              fmt::format("{:.3f}", 2 / (of_width.front().number("width") - 1))});
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
Panel against_criticality(CsvLines const& lines, char const* quantity, char const* title, double (*limit_at)(double m)) {
  auto const criticality = [](CsvLine const& line) { return std::sqrt(2 * std::log(line.number("keys"))) / line.number("sigma"); };
  auto const heads = [](CsvLine const& line) { return line["scores"].starts_with("trained") ? "trained heads" : ""; };
  auto const of_softmax = lines_with(lines, {{"quantity", quantity}, {"variant", "softmax"}});
  std::vector<FigureLayer> layers{{As::line, {}, limit_look(), "n → ∞"}};
  for (double m = 0.02; m < 1; m += 0.02)
    if (std::isfinite(limit_at(m))) layers[0].points.push_back(CurvePoint::bare(m, limit_at(m)));
  std::ranges::move(curves_beside_theory(grouped(lines_with(of_softmax, {{"scores", "normal"}}), by("keys", "{} keys")), criticality),
                    std::back_inserter(layers));
  for (auto& layer : curves_of(grouped(of_softmax, heads), criticality))
    layers.push_back({As::intervals, std::move(layer.points), look_of(6), layer.name});
  return panel_of(title, std::move(layers));
}

std::vector<StudyPart> length_page(StudyRecord const& record) {
  auto const lines = csv_lines(record.csv, record.folder / "results.csv");
  auto const entropy = [](double m) { return m < 0.95 ? boost::math::digamma(1.0) - boost::math::digamma(1 - m) : std::nan(""); };
  Figure criticality{
      .name = "criticality",
      .title = "Normal scores: what softmax passes, by m = √(2 log n)/σ",
      .caption =
          "Dots: measured, ± 2 standard errors; lines: exact at finite n; grey: the limit of many keys (m, m(1 − m)/3, ψ(1) − "
          "ψ(1 − m)). Small m: large scores.",
      .panels = {against_criticality(lines, "trace_jacobian", "tr J", [](double m) { return m; }),
                 against_criticality(lines, "jacobian_norm_squared", "‖J‖²", [](double m) { return m * (1 - m) / 3; }),
                 against_criticality(lines, "entropy", "entropy (nat)", entropy)},
      .across = 3};
  share_x(criticality, "m", Ticks::tens);
  auto const over_keys = [&](char const* quantity, char const* title, bool log, NameOf const& name_of) {
    auto groups = grouped(lines_with(lines, {{"quantity", quantity}}), name_of);
    std::ranges::sort(groups, {}, &LineGroup::name);
    return panel_of(title, curves_of(groups, over("keys")), log);
  };
  std::string sigma;  // of the variants
  for (auto const& line : lines)
    if (line["variant"] != "softmax") sigma = line["sigma"];
  auto const scores = [](CsvLine const& line) -> std::string {
    if (line["variant"] != "softmax") return "";
    if (line["scores"] == "sphere") return fmt::format("sphere, d = {}", line["width"]);
    return line["sigma"] == "1.0" || line["sigma"] == "1" ? "normal, σ = 1" : "";
  };
  auto const variant = [&](CsvLine const& line) { return line["scores"] == "normal" && line["sigma"] == sigma ? line["variant"] : ""; };
  Figure gap{.name = "gap_function",
             .title = "Gap function: the sharpness at which softmax selects",
             .caption = "Medians over rows ± 2 standard errors, by scores.",
             .panels = {over_keys("gap_function", "median of Λ", true, scores)}};
  Figure variants{
      .name = "variants",
      .title = "Softmax and its variants as keys become more",
      .caption = fmt::format("Means over rows ± 2 standard errors; normal scores, σ = {}; scales as trained with the first number of keys. "
                             "log_length is ssmax's scale, too.",
                             sigma),
      .panels = {over_keys("jacobian_norm_squared", "‖J‖²", true, variant), over_keys("max_weight", "largest weight", false, variant)},
      .across = 2};
  StudyPart part{.title = "By the number of keys", .html = "", .figures = {criticality}};
  for (auto& each : {&gap, &variants}) {
    if (each->panels.front().layers.empty()) continue;
    share_x(*each, "keys", Ticks::twos);
    part.figures.push_back(*each);
  }
  return {part};
}

Declared<StudyKind> const softmax_length_study{study_kind(
    "softmax_length", "saturation of softmax by the number of keys: independent and correlated scores, and the sphere, beside closed forms",
    softmax_length, length_page)};

}  // namespace

}  // namespace heed
