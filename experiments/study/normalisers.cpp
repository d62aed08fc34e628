// Gradients of normalisers other than softmax as their scores grow: weights p of n scores, iid N(0, d_k) times the scale, and the Jacobian
// ∂p/∂scores by the engine, one backward pass per key. Sampled rows are independent, so that standard errors are the usual ones. Covers
// every declared align (`heed list attention`) that is equivariant under permutations of the keys: others depend on positions as well as
// scores.

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "experiments/study/study.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct NormalisersSettings : Settings {
  std::vector<double> d_k{1, 4, 16, 64, 256, 1024};
  Index keys = 10, samples = 4000;
  std::vector<std::string> scale{"none", "rsqrt"};

  std::vector<Field> fields() override {
    return {field(&d_k, "d_k", "variances of the unscaled scores").in(1e-3, 65536).filled(),
            field(&keys, "keys", "number of keys").in(2, 256), field(&samples, "samples", "sampled queries for each d_k").in(100, 1e6),
            field(&scale, "scale", "scales of the scores: 1, 1/√d_k").one_of({"none", "rsqrt"}).filled()};
  }
};

constexpr std::array quantity_names{"trace", "frobenius", "frobenius_squared", "max_weight", "zeros", "without_gradient"};

/// Weights as a function of scores, both [rows, n].
using Normaliser = std::function<Tensor(Tensor const& scores)>;

Normaliser normaliser_of(AlignKind const& kind, Index keys) {
  AttentionSettings settings;
  settings.align = kind.name;
  settings.set("window", 1.0);  // narrower than a row
  Parameters parameters(1, DType::float64);
  std::shared_ptr<Align> const align = kind.make(Scope(parameters), settings, {1, keys, keys});
  return [=](Tensor const& scores) {
    Index const rows = scores.size(0);
    Tensor const queries = Tensor::zeros({rows, 1, 1, keys}, DType::float64);
    return reshape((*align)(reshape(scores, {rows, 1, 1, keys}), queries, {}), {rows, keys});
  };
}

/// Whether weights change places with their scores.
bool is_of_scores_alone(Normaliser const& normaliser, Index keys) {
  NoGrad const no_grad;
  std::vector<double> forward;
  for (Index j = 0; j < keys; ++j) forward.push_back(std::sin(static_cast<double>(3 * j + 1)));
  std::vector<double> const backward(forward.rbegin(), forward.rend());
  auto const p = normaliser(Tensor::of(forward, {1, keys})).to_vector(), turned = normaliser(Tensor::of(backward, {1, keys})).to_vector();
  return std::equal(p.begin(), p.end(), turned.rbegin(), [](double a, double b) { return !(std::abs(a - b) > 1e-12); });
}

/// By quantity, its values for all rows.
std::vector<std::vector<double>> values_of(Normaliser const& normaliser, Tensor const& scores) {
  WithGrad const recorded;
  Tensor z = scores;
  z.set_requires_grad();
  Tensor const p = normaliser(z);
  Index const rows = p.size(0), n = p.size(1);
  std::vector<std::vector<double>> values(quantity_names.size(), std::vector<double>(static_cast<std::size_t>(rows)));
  auto &trace = values[0], &frobenius = values[1], &squared = values[2], &largest = values[3], &zeros = values[4], &lost = values[5];
  for (Index j = 0; j < n; ++j) {
    auto const row = grad(sum(slice(p, 1, j, j + 1)), z).to_vector();  // ∂p_j/∂z of each sample
    for (Index i = 0; i < rows; ++i) {
      at(trace, i) += at(row, i * n + j);
      for (Index k = 0; k < n; ++k) at(squared, i) += at(row, i * n + k) * at(row, i * n + k);
    }
  }
  auto const weights = p.to_vector();
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
    auto const first = weights.begin() + static_cast<std::ptrdiff_t>(i) * n;
    frobenius[i] = std::sqrt(squared[i]);
    largest[i] = *std::max_element(first, first + n);
    zeros[i] = to_double(std::count(first, first + n, 0.0)) / to_double(n);
    lost[i] = squared[i] == 0 ? 1 : 0;
  }
  return values;
}

/// The lines of results.csv for one normaliser, scale and d_k, one per quantity: mean, its standard error, median.
CsvRows measured_lines(NormalisersSettings const& settings, std::string const& name, Normaliser const& normaliser, std::string const& scale,
                       double d, std::uint64_t seed) {
  double const deviation = scale == "none" ? std::sqrt(d) : 1;
  // The same numbers for all: what differs is the normaliser and the scale.
  Tensor const scores =
      heed::scale(Tensor::normal({settings.samples, settings.keys}, Stream(seed, "normalisers"), DType::float64), deviation);
  auto values = values_of(normaliser, scores);
  CsvRows lines;
  for (std::size_t q = 0; q < values.size(); ++q) {
    auto const measured = measured_mean(values[q]);
    auto const middle = values[q].begin() + static_cast<std::ptrdiff_t>(values[q].size() / 2);
    std::ranges::nth_element(values[q], middle);
    lines.push_back(
        line_of(name, scale, fmt::format("{:g}", d), settings.keys, quantity_names[q], measured.mean, measured.standard_error, *middle));
  }
  return lines;
}

StudyResult normalisers_report(NormalisersSettings const& settings, CsvRows const& rows) {
  auto result = result_of({"align", "scale", "d_k", "keys", "quantity", "mean", "standard_error", "median"}, rows);
  StudyTable table{fmt::format("{} keys", settings.keys), {{"weights", "tr J", "median ‖J‖", "mean ‖J‖²", "queries with J = 0"}}};
  auto const largest = fmt::format("{:g}", std::ranges::max(settings.d_k));
  std::vector<std::string> others;  // of no query is the Jacobian 0
  auto const cell = [](CsvLine const& line) { return fmt::format("{}.{}.{}", line["align"], line["scale"], line["d_k"]); };
  for (auto const& group : grouped(csv_lines(result.csv, "results.csv"), cell)) {
    auto const& first = group.lines.front();
    auto const &name = first["align"], &scale = first["scale"], &d = first["d_k"];
    auto const of = [&](char const* quantity, char const* column) {
      return lines_with(group.lines, {{"quantity", quantity}}).at(0).number(column);
    };
    double const none = of("without_gradient", "mean");
    table.rows.push_back({fmt::format("{}, {}, d_k {}", name, scale == "none" ? "no scale" : "1/√d_k", d),
                          fmt::format("{:.4g}", of("trace", "mean")), fmt::format("{:.3g}", of("frobenius", "median")),
                          fmt::format("{:.4g}", of("frobenius_squared", "mean")), fmt::format("{:.3g} %", 100 * none)});
    result.figures.emplace_back(group.name + ".without_gradient", none);
    if (scale != "none" || d != largest) continue;
    if (none == 0)
      others.push_back(name);
    else
      result.sentences.push_back(
          fmt::format("{}: without a scale at d_k {} the Jacobian is exactly 0 for {:.3g} % of the queries", name, d, 100 * none));
  }
  if (!others.empty())
    result.sentences.push_back(
        fmt::format("{}: without a scale at d_k {} the Jacobian is exactly 0 for no query", fmt::join(others, ", "), largest));
  result.tables = {table};
  return result;
}

Study normalisers(NormalisersSettings const& settings, StudyContext const& context) {
  Study study;
  for (auto const& kind : Registry<AlignKind>::all()) {
    auto const normaliser = normaliser_of(kind, settings.keys);
    if (!is_of_scores_alone(normaliser, settings.keys)) continue;
    for (auto const& scale : settings.scale)
      for (double const d : settings.d_k)
        study.cells.push_back(
            {fmt::format("{}, {}, d_k {}", kind.name, scale, d), [&settings, name = kind.name, normaliser, scale, d, seed = context.seed] {
               return measured_lines(settings, name, normaliser, scale, d, seed);
             }});
  }
  study.report = [&settings](CsvRows const& rows) { return normalisers_report(settings, rows); };
  return study;
}

std::vector<StudyPart> normalisers_page(StudyRecord const& record) {
  auto const lines = csv_lines(record.csv, record.folder / "results.csv");
  StudyPart part{"Gradients through normalisers", "", {}};
  for (auto const& [scale, some] : grouped(lines, by("scale"))) {
    Figure figure{.name = "normalisers_" + scale,
                  .title = scale == "none" ? "Without a scale" : "With 1/√d_k",
                  .caption =
                      "Independent normal scores of variance d_k; points: means with 95 % intervals, joined, for no theory is "
                      "known but softmax's. Jacobians are exact, by the engine's derivatives.",
                  .across = 2};
    for (auto const& [quantity, title] : {std::pair{"trace", "mean of tr J"},
                                          {"frobenius_squared", "mean of ‖J‖²"},
                                          {"max_weight", "mean of the largest weight"},
                                          {"zeros", "share of weights that are 0"}})
      figure.panels.push_back(
          panel_of(title, curves_of(grouped(lines_with(some, {{"quantity", quantity}}), by("align")), over("d_k"), 1.96)));
    share_x(figure, "d_k", Ticks::twos);
    part.figures.push_back(std::move(figure));
  }
  return {std::move(part)};
}

Declared<StudyKind> const normalisers_study{
    study_kind("normalisers", "exact Jacobians of every normaliser of scores as d_k grows", normalisers, normalisers_page)};

}  // namespace

}  // namespace heed
