// What depth does to a stack of attention layers, at initialisation and after some updates: how fast the tokens become one (rank collapse,
// Dong, Cordonnier & Loukas 2021), and what reaches the queries', keys' and values' projections of each layer (Noci et al. 2022), with and
// without skips, 1/√L on the branches, and norms.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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
#include "nn/optimizer.hpp"
#include "nn/parameters.hpp"

namespace heed {

namespace {

struct DepthSettings : Settings {
  std::vector<double> depth{1, 2, 4, 8, 16, 32}, steps{0};
  std::vector<std::string> skips{"none", "one", "rsqrt_depth"}, norm{"none", "pre", "post"};
  Index width = 32, tokens = 32, draws = 16;
  double lr = 0.001;

  std::vector<Field> fields() override {
    return {field(&depth, "depth", "numbers of layers, integers").in(1, 256).integers(),
            field(&skips, "skips", "x + f(x); f(x) alone; or x + f(x)/√L").one_of({"none", "one", "rsqrt_depth"}),
            field(&norm, "norm", "layer norm: none, before each layer, after each layer").one_of({"none", "pre", "post"}),
            field(&width, "width", "width of tokens and of the only head").in(2, 1024),
            field(&tokens, "tokens", "tokens of a sequence").in(2, 1024),
            field(&draws, "draws", "draws of weights and tokens").in(2, 10'000),
            field(&steps, "steps", "numbers of updates after which it is measured, integers").in(0, 10'000).integers(),
            field(&lr, "lr", "learning rate of AdamW").above(0)};
  }
  std::optional<std::string> contradiction() override {
    for (auto const& [name, empty] : {std::pair("depth", depth.empty()), std::pair("steps", steps.empty()),
                                      std::pair("skips", skips.empty()), std::pair("norm", norm.empty())})
      if (empty) return fmt::format("{}: a list is empty", name);
    return std::nullopt;
  }
};

std::vector<std::string> const depth_projections{"query", "key", "value"};

/// One stack after some updates: the share of the tokens that is not their mean, after each layer; by layer, the norm of the gradients of
/// each projection of L, a random linear function of the outputs, of variance 1 for outputs of variance 1.
struct DepthDraw {
  std::vector<double> residuals;
  std::map<std::string, std::vector<double>> gradients;
};

/// ‖X − 1 x̄ᵀ‖/‖X‖.
double rank_residual(Tensor const& x) {
  Tensor const apart = x - mean(x, {0}, true);
  return std::sqrt(sum(apart * apart).item() / sum(x * x).item());
}

/// A stack of attention layers over [T, d] tokens in float64. Its weights are N(0, 1/d).
class DepthStack {
 public:
  DepthStack(DepthSettings const& settings, std::string const& skip, std::string const& norm, Index depth, Stream const& stream)
      : skip_(skip), norm_(norm), depth_(depth), width_(to_double(settings.width)) {
    auto const normal = [&](std::string const& name, Shape const& shape, double deviation) {
      return deviation * Tensor::normal(shape, stream.child(name), DType::float64);
    };
    tokens_ = normal("tokens", {settings.tokens, settings.width}, 1);
    readout_ = normal("readout", tokens_.shape(), 1 / std::sqrt(to_double(tokens_.elements())));
    for (Index layer = 0; layer < depth; ++layer)
      for (std::string const name : {"query", "key", "value", "output"}) {
        auto const path = fmt::format("{}.{}", name, layer);
        Tensor weight = normal(path, {settings.width, settings.width}, 1 / std::sqrt(width_));
        weight.set_requires_grad();
        parameters.adopt(path, weight, WeightDecay::off);
      }
  }

  /// Leaves the gradients of L in the parameters.
  DepthDraw measured() {
    WithGrad const recorded;
    DepthDraw result;
    Tensor x = tokens_;
    for (Index layer = 0; layer < depth_; ++layer) {
      x = through(x, layer);
      result.residuals.push_back(rank_residual(x.detach()));
    }
    parameters.clear_gradients();
    sum(x * readout_).backward();
    for (auto const& name : depth_projections)
      for (Index layer = 0; layer < depth_; ++layer) {
        Tensor const gradient = weight(name, layer).grad();
        result.gradients[name].push_back(std::sqrt(sum(gradient * gradient).item()));
      }
    return result;
  }

  Parameters parameters{0, DType::float64};

 private:
  Tensor const& weight(std::string const& name, Index layer) const { return *parameters.find(fmt::format("{}.{}", name, layer)); }
  Tensor normed(Tensor const& x, char const* placement) const {
    Tensor const ones = Tensor::ones({x.size(1)}, DType::float64);
    return norm_ == placement ? layer_norm(x, ones, scale(ones, 0)) : x;
  }
  Tensor through(Tensor const& x, Index layer) const {
    Tensor const y = normed(x, "pre");
    Tensor const scores = matmul(matmul(y, weight("query", layer)), matmul(y, weight("key", layer)), false, true) / std::sqrt(width_);
    Tensor const f = matmul(matmul(softmax(scores, -1), matmul(y, weight("value", layer))), weight("output", layer));
    double const branch = skip_ == "rsqrt_depth" ? 1 / std::sqrt(to_double(depth_)) : 1;
    return normed(skip_ == "none" ? f : x + branch * f, "post");
  }

  std::string skip_, norm_;
  Index depth_;
  double width_;
  Tensor tokens_, readout_;
};

/// By number of updates and layer: the residual; where it is between 1e-12 and 0.5 in all draws, log(−log residual), which is linear in the
/// layer if the collapse is doubly exponential; the gradients' norms. As layer 0 these of all layers together.
CsvRows depth_cell(DepthSettings const& settings, std::string const& skip, std::string const& norm, Index depth, Stream const& stream) {
  std::map<std::tuple<Index, Index, std::string>, std::vector<double>> values;
  auto const last = static_cast<Index>(std::ranges::max(settings.steps));
  for (Index draw = 0; draw < settings.draws; ++draw) {
    DepthStack stack(settings, skip, norm, depth, stream.child(static_cast<std::uint64_t>(draw)));
    auto const optimizer = make_optimizer(optimizer_choice(), stack.parameters);
    for (Index step = 0; step <= last; ++step) {
      stop_if_interrupted();
      if (step > 0) optimizer->step(settings.lr);
      auto const found = stack.measured();
      if (std::ranges::find(settings.steps, to_double(step)) == settings.steps.end()) continue;
      for (Index layer = 1; layer <= depth; ++layer) {
        double const residual = at(found.residuals, layer - 1);
        values[{step, layer, "residual"}].push_back(residual);
        if (residual > 1e-12 && residual < 0.5) values[{step, layer, "collapse"}].push_back(std::log(-std::log(residual)));
      }
      for (auto const& [name, norms] : found.gradients) {
        for (Index layer = 1; layer <= depth; ++layer) values[{step, layer, "gradient_" + name}].push_back(at(norms, layer - 1));
        values[{step, 0, "gradient_" + name}].push_back(std::sqrt(std::inner_product(norms.begin(), norms.end(), norms.begin(), 0.0)));
      }
    }
  }
  CsvRows rows;
  for (auto const& [key, each] : values) {
    if (std::ssize(each) < settings.draws) continue;
    auto const& [step, layer, quantity] = key;
    auto const found = measured_mean(each);
    rows.push_back({skip, norm, fmt::format("{}", depth), fmt::format("{}", step), fmt::format("{}", layer), quantity,
                    csv_number(found.mean), csv_number(found.standard_error)});
  }
  return rows;
}

std::string skips_in_words(std::string const& skips) {
  return skips == "none" ? "no skips" : skips == "one" ? "skips" : "skips, branches /√L";
}
std::string after(Index step) { return fmt::format("after {} updates", step); }
std::string norm_in_words(std::string const& norm) { return norm == "none" ? "no norm" : norm + "-norm"; }

StudyResult depth_report(CsvRows const& rows) {
  auto result = result_of({"skips", "norm", "depth", "step", "layer", "quantity", "mean", "standard_error"}, rows);
  std::map<std::tuple<std::string, std::string, Index>, std::map<std::tuple<std::string, Index, Index>, double>>
      all;  // quantity, depth, layer
  std::set<Index> depths;
  for (auto const& line : csv_lines(result.csv, "results.csv")) {
    auto const depth = line.number<Index>("depth"), layer = line.number<Index>("layer");
    all[{line["skips"], line["norm"], line.number<Index>("step")}][{line["quantity"], depth, layer}] = line.number("mean");
    depths.insert(depth);
  }
  Index const deepest = *depths.rbegin();
  StudyTable table{"By depth",
                   {{"skips", "norm", "updates", "layers", "residual after the last", "‖∂L/∂W_q‖ of the first layer", "of the last",
                     "of all", "‖∂L/∂W_k‖ of all", "‖∂L/∂W_v‖ of all"}}};
  for (auto const& [key, means] : all) {
    auto const& [skips, norm, step] = key;
    std::vector<double> logs, totals, layers, collapse;
    for (Index const depth : depths) {
      std::vector<std::string> row{skips, norm, fmt::format("{}", step), fmt::format("{}", depth)};
      for (auto const& [quantity, layer] :
           {std::pair("residual", depth), std::pair("gradient_query", Index(1)), std::pair("gradient_query", depth),
            std::pair("gradient_query", Index(0)), std::pair("gradient_key", Index(0)), std::pair("gradient_value", Index(0))})
        row.push_back(fmt::format("{:.3g}", means.at({quantity, depth, layer})));
      table.rows.push_back(std::move(row));
      logs.push_back(std::log(depth)), totals.push_back(std::log(means.at({"gradient_query", depth, 0})));
    }
    for (Index layer = 1; layer <= deepest; ++layer)
      if (auto const found = means.find({"collapse", deepest, layer}); found != means.end())
        layers.push_back(to_double(layer)), collapse.push_back(found->second);
    auto const name = skips_in_words(skips) + ", " + norm_in_words(norm) + (step > 0 ? ", " + after(step) : "");
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

/// A panel per norm, a line per kind of skips: a quantity of the deepest stack by layer, after so many updates.
std::vector<Panel> depth_panels(std::vector<CsvLine> const& lines, Index deepest, Index step, std::string const& quantity,
                                std::string const& title) {
  std::vector<Panel> panels;
  for (std::string const norm : {"none", "pre", "post"}) {
    Panel panel{.title = norm_in_words(norm) + title};
    std::size_t number = 0;
    for (std::string const skips : {"none", "one", "rsqrt_depth"}) {
      FigureLayer layer{As::joined_intervals, {}, look_of(number++), skips_in_words(skips)};
      for (auto const& line : lines) {
        if (line["quantity"] != quantity || line["norm"] != norm || line["skips"] != skips || line.number<Index>("step") != step) continue;
        auto point = point_at(line, line.number("layer"));
        point.low = std::max(point.low, point.y / 10);
        if (line.number<Index>("depth") == deepest && point.x > 0 && point.y > 1e-16) layer.points.push_back(point);
      }
      if (!layer.points.empty()) panel.layers.push_back(std::move(layer));
    }
    if (panel.layers.empty()) continue;
    panel.y = axis_over(panel.layers, true);
    panels.push_back(std::move(panel));
  }
  return panels;
}

std::vector<StudyPart> depth_page(StudyRecord const& record) {
  auto const lines = csv_lines(record.csv, record.folder / "results.csv");
  std::set<Index> steps, depths;
  for (auto const& line : lines) steps.insert(line.number<Index>("step")), depths.insert(line.number<Index>("depth"));
  Index const deepest = *depths.rbegin();
  std::vector<StudyPart> parts;
  for (Index const step : steps) {
    auto const when = step == 0 ? std::string("at initialisation") : after(step);
    auto const caption = fmt::format("By layer of a stack of {}, {}; mean over draws.", deepest, when);
    auto const suffix = step == 0 ? std::string() : fmt::format("_{}", step);
    Figure residuals{
        .name = "rank_collapse" + suffix, .title = "Share of the tokens that is not their mean", .caption = caption, .across = 3};
    residuals.panels = depth_panels(lines, deepest, step, "residual", "");
    Figure gradients{.name = "gradients" + suffix, .title = "‖∂L/∂W‖ of queries, keys and values", .caption = caption, .across = 3};
    for (auto const& name : depth_projections)
      std::ranges::move(depth_panels(lines, deepest, step, "gradient_" + name, fmt::format(": W_{}", name.front())),
                        std::back_inserter(gradients.panels));
    for (Figure* const figure : {&residuals, &gradients}) share_x(*figure, "layer", Ticks::twos);
    parts.push_back({.title = "By layer, " + when, .html = "", .figures = {residuals, gradients}});
  }
  return parts;
}

Declared<StudyKind> const depth_study{
    study_kind("depth", "rank collapse and gradients by depth, at initialisation and after updates, with and without skips and norms",
               depth, depth_page)};

}  // namespace

}  // namespace heed
