// What depth does to an untrained stack of attention layers: how fast the tokens become one (rank collapse, Dong, Cordonnier & Loukas
// 2021), and what reaches the query projections of each layer (Noci et al. 2022), with and without skips, 1/√L on the branches, and norms.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/softmax.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/report/figure.hpp"
#include "experiments/study/samples.hpp"
#include "experiments/study/study.hpp"

namespace heed {

namespace {

struct DepthSettings : Settings {
  std::vector<double> depth{1, 2, 4, 8, 16, 32};
  std::vector<std::string> skips{"none", "one", "rsqrt_depth"}, norm{"none", "pre", "post"};
  Index width = 32, tokens = 32, draws = 16;

  std::vector<Field> fields() override {
    return {field(&depth, "depth", "numbers of layers, integers").in(1, 256).integers(),
            field(&skips, "skips", "x + f(x); f(x) alone; or x + f(x)/√L").one_of({"none", "one", "rsqrt_depth"}),
            field(&norm, "norm", "layer norm: none, before each layer, after each layer").one_of({"none", "pre", "post"}),
            field(&width, "width", "width of tokens and of the only head").in(2, 1024),
            field(&tokens, "tokens", "tokens of a sequence").in(2, 1024),
            field(&draws, "draws", "draws of weights and tokens").in(2, 10'000)};
  }
  std::optional<std::string> contradiction() override {
    if (depth.empty() || skips.empty() || norm.empty()) return "depth: a list is empty";
    return std::nullopt;
  }
};

/// One stack and its draw, [T, d] tokens in float64: the share of the tokens that is not their mean, after each layer, and ‖∂L/∂W_q‖ by
/// layer, L a random linear function of the outputs, of variance 1 for outputs of variance 1.
struct DepthDraw {
  std::vector<double> residuals, gradients;
};

/// ‖X − 1 x̄ᵀ‖/‖X‖.
double rank_residual(Tensor const& x) {
  Tensor const apart = x - mean(x, {0}, true);
  return std::sqrt(sum(apart * apart).item() / sum(x * x).item());
}

DepthDraw drawn(DepthSettings const& settings, std::string const& skip, std::string const& norm, Index depth, Stream const& stream) {
  WithGrad const recorded;
  Index const d = settings.width;
  double const root = std::sqrt(static_cast<double>(d)), branch = skip == "rsqrt_depth" ? 1 / std::sqrt(static_cast<double>(depth)) : 1;
  auto const normal = [&](std::string const& name, Shape const& shape, double deviation) {
    return deviation * Tensor::normal(shape, stream.child(name), DType::float64);
  };
  Tensor const ones = Tensor::ones({d}, DType::float64), zeros = Tensor::zeros({d}, DType::float64);
  Tensor x = normal("tokens", {settings.tokens, d}, 1);
  std::vector<Tensor> queries;
  DepthDraw result;
  for (Index layer = 0; layer < depth; ++layer) {
    auto const weight = [&](char const* name) { return normal(fmt::format("{}.{}", name, layer), {d, d}, 1 / root); };
    Tensor query = weight("query");
    query.set_requires_grad();
    queries.push_back(query);
    Tensor const y = norm == "pre" ? layer_norm(x, ones, zeros) : x;
    Tensor const scores = matmul(matmul(y, query), matmul(y, weight("key")), false, true) / root;
    Tensor const f = matmul(matmul(softmax(scores, -1), matmul(y, weight("value"))), weight("output"));
    x = skip == "none" ? f : x + branch * f;
    if (norm == "post") x = layer_norm(x, ones, zeros);
    result.residuals.push_back(rank_residual(x.detach()));
  }
  Tensor const loss = sum(x * normal("readout", x.shape(), 1 / std::sqrt(static_cast<double>(x.elements()))));
  for (Tensor const& gradient : grad({loss}, queries)) result.gradients.push_back(std::sqrt(sum(gradient * gradient).item()));
  return result;
}

/// By layer: the residual; where it is between 1e-12 and 0.5 in all draws, log(−log residual), which is linear in the layer if the collapse
/// is doubly exponential; ‖∂L/∂W_q‖. As layer 0 that norm of all layers together.
CsvRows depth_cell(DepthSettings const& settings, std::string const& skip, std::string const& norm, Index depth, Stream const& stream) {
  std::map<std::pair<Index, std::string>, std::vector<double>> values;
  for (Index draw = 0; draw < settings.draws; ++draw) {
    stop_if_interrupted();
    auto const found = drawn(settings, skip, norm, depth, stream.child(static_cast<std::uint64_t>(draw)));
    double squares = 0;
    for (Index layer = 1; layer <= depth; ++layer) {
      double const residual = at(found.residuals, layer - 1), gradient = at(found.gradients, layer - 1);
      values[{layer, "residual"}].push_back(residual);
      values[{layer, "gradient_query"}].push_back(gradient);
      if (residual > 1e-12 && residual < 0.5) values[{layer, "collapse"}].push_back(std::log(-std::log(residual)));
      squares += gradient * gradient;
    }
    values[{0, "gradient_query"}].push_back(std::sqrt(squares));
  }
  CsvRows rows;
  for (auto const& [key, each] : values) {
    if (std::ssize(each) < settings.draws) continue;
    auto const found = measured_mean(each);
    rows.push_back({skip, norm, fmt::format("{}", depth), fmt::format("{}", key.first), key.second, csv_number(found.mean),
                    csv_number(found.standard_error)});
  }
  return rows;
}

std::string skips_in_words(std::string const& skips) {
  return skips == "none" ? "no skips" : skips == "one" ? "skips" : "skips, branches /√L";
}
std::string norm_in_words(std::string const& norm) { return norm == "none" ? "no norm" : norm + "-norm"; }

StudyResult depth_report(CsvRows const& rows) {
  auto result = result_of({"skips", "norm", "depth", "layer", "quantity", "mean", "standard_error"}, rows);
  auto const lines = csv_lines(result.csv, "results.csv");
  std::map<std::pair<std::string, std::string>, std::map<std::tuple<std::string, double, double>, double>> all;  // quantity, depth, layer
  std::set<double> depths;
  for (auto const& line : lines) {
    all[{line["skips"], line["norm"]}][{line["quantity"], line.number("depth"), line.number("layer")}] = line.number("mean");
    depths.insert(line.number("depth"));
  }
  double const deepest = *depths.rbegin();
  StudyTable table{"By depth",
                   {{"skips", "norm", "layers", "residual after the last", "‖∂L/∂W_q‖ of the first layer", "of the last", "of all"}}};
  for (auto const& [key, means] : all) {
    std::vector<double> logs, totals, layers, collapse;
    for (double const depth : depths) {
      auto const cell = [](double value) { return fmt::format("{:.3g}", value); };
      double const total = means.at({"gradient_query", depth, 0});
      table.rows.push_back({key.first, key.second, fmt::format("{:g}", depth), cell(means.at({"residual", depth, depth})),
                            cell(means.at({"gradient_query", depth, 1})), cell(means.at({"gradient_query", depth, depth})), cell(total)});
      logs.push_back(std::log(depth)), totals.push_back(std::log(total));
    }
    for (double layer = 1; layer <= deepest; ++layer)
      if (auto const found = means.find({"collapse", deepest, layer}); found != means.end())
        layers.push_back(layer), collapse.push_back(found->second);
    auto const name = skips_in_words(key.first) + ", " + norm_in_words(key.second);
    if (collapse.size() > 2) {
      double const slope = fit_line(layers, collapse).slope;
      result.sentences.push_back(
          fmt::format("{}: log(−log residual) rises by {:.3f} a layer where the residual is between 1e-12 and 0.5 ({} layers): {}", name,
                      slope, collapse.size(), slope > 0.1 ? "doubly exponential" : "slower than doubly exponential"));
    }
    if (totals.size() > 2)
      result.sentences.push_back(
          fmt::format("{}: ‖∂L/∂W_q‖ of all layers together goes as L^{:.2f}; of {} layers the last has {:.2g} times the first's", name,
                      fit_line(logs, totals).slope, deepest,
                      means.at({"gradient_query", deepest, deepest}) / means.at({"gradient_query", deepest, 1})));
  }
  result.tables = {table};
  return result;
}

Study depth(DepthSettings const& settings, StudyContext const& context) {
  Study study;
  Stream const stream(context.seed, "depth");
  for (auto const& skip : settings.skips)
    for (auto const& norm : settings.norm)
      for (double const layers : settings.depth)
        study.cells.push_back({fmt::format("skips {}, norm {}, {:g} layers", skip, norm, layers), [&settings, skip, norm, layers, stream] {
                                 return depth_cell(settings, skip, norm, static_cast<Index>(layers), stream);
                               }});
  study.report = depth_report;
  return study;
}

/// A panel per norm, a line per kind of skips: the deepest stack's residual, or its gradients, by layer.
Figure depth_figure(StudyRecord const& record, bool residual) {
  auto const lines = csv_lines(record.csv, record.folder / "results.csv");
  Index deepest = 0;
  for (auto const& line : lines) deepest = std::max(deepest, line.number<Index>("depth"));
  Figure figure{.name = residual ? "rank_collapse" : "query_gradients",
                .title = residual ? "Share of the tokens that is not their mean" : "‖∂L/∂W_q‖",
                .caption = fmt::format("By layer of a stack of {}, at initialisation; mean over draws.", deepest),
                .across = 3};
  for (std::string const norm : {"none", "pre", "post"}) {
    Panel panel{.title = norm_in_words(norm)};
    std::size_t number = 0;
    for (std::string const skips : {"none", "one", "rsqrt_depth"}) {
      FigureLayer layer{As::joined_intervals, {}, look_of(number++), skips_in_words(skips)};
      for (auto const& line : lines) {
        if (line["quantity"] != (residual ? "residual" : "gradient_query") || line["norm"] != norm || line["skips"] != skips) continue;
        auto point = point_at(line, line.number("layer"));
        point.low = std::max(point.low, point.y / 10);
        if (line.number<Index>("depth") == deepest && point.x > 0 && point.y > 1e-16) layer.points.push_back(point);
      }
      if (!layer.points.empty()) panel.layers.push_back(std::move(layer));
    }
    if (panel.layers.empty()) continue;
    panel.y = axis_over(panel.layers, true);
    figure.panels.push_back(std::move(panel));
  }
  share_x(figure, "layer", Ticks::twos);
  return figure;
}

std::vector<StudyPart> depth_page(StudyRecord const& record) {
  return {{.title = "By depth", .html = "", .figures = {depth_figure(record, true), depth_figure(record, false)}}};
}

Declared<StudyKind> const depth_study{
    study_kind("depth", "rank collapse and gradients by depth at initialisation, with and without skips and norms", depth, depth_page)};

}  // namespace

}  // namespace heed
