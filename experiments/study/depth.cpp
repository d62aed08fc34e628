// What depth does to a stack of attention layers, at initialisation and after some updates: how fast the tokens become one (rank collapse,
// Dong, Cordonnier & Loukas 2021), and what reaches the queries', keys' and values' projections of each layer (Noci et al. 2022), with and
// without skips, 1/√L on the branches, and norms.

#include <algorithm>
#include <cmath>
#include <map>
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
#include "experiments/config/table.hpp"
#include "experiments/metric/statistics.hpp"
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
    return {field(&depth, "depth", "numbers of layers, integers").in(1, 256).integers().filled(),
            field(&skips, "skips", "x + f(x); f(x) alone; or x + f(x)/√L").one_of({"none", "one", "rsqrt_depth"}).filled(),
            field(&norm, "norm", "layer norm: none, before each layer, after each layer").one_of({"none", "pre", "post"}).filled(),
            field(&width, "width", "width of tokens and of the only head").in(2, 1024),
            field(&tokens, "tokens", "tokens of a sequence").in(2, 1024),
            field(&draws, "draws", "draws of weights and tokens").in(2, 10'000),
            field(&steps, "steps", "numbers of updates after which it is measured, integers").in(0, 10'000).integers().filled(),
            field(&lr, "lr", "learning rate of AdamW").above(0)};
  }
};

/// No smaller share of the first layer's value is drawn or named.
constexpr double least_share = 1e-13;

std::vector<std::string> const depth_projections{"query", "key", "value"};

/// By number of updates, layer and quantity: its values in each draw. Of layer 0 are those of all layers together.
using DepthValues = std::map<std::tuple<Index, Index, std::string>, std::vector<double>>;

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

  /// Adds the share of the tokens that is not their mean, after each layer; where it is between 1e-12 and 0.5 log(−log share), which is
  /// linear in the layer if the collapse is doubly exponential; and, left in the parameters, the gradients' norms of each projection for L,
  /// a random linear function of the outputs, of variance 1 for outputs of variance 1.
  void measure(Index step, DepthValues& values) {
    WithGrad const recorded;
    Tensor x = tokens_;
    for (Index layer = 0; layer < depth_; ++layer) {
      x = through(x, layer);
      double const residual = rank_residual(x.detach());
      values[{step, layer + 1, "residual"}].push_back(residual);
      if (residual > 1e-12 && residual < 0.5) values[{step, layer + 1, "collapse"}].push_back(std::log(-std::log(residual)));
    }
    parameters.clear_gradients();
    sum(x * readout_).backward();
    for (auto const& name : depth_projections) {
      double squares = 0;
      for (Index layer = 0; layer < depth_; ++layer) {
        Tensor const gradient = weight(name, layer).grad();
        double const norm = std::sqrt(sum(gradient * gradient).item());
        values[{step, layer + 1, "gradient_" + name}].push_back(norm);
        squares += norm * norm;
      }
      values[{step, 0, "gradient_" + name}].push_back(std::sqrt(squares));
    }
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

/// Of what was measured in all draws.
CsvRows depth_cell(DepthSettings const& settings, std::string const& skip, std::string const& norm, Index depth, Stream const& stream) {
  DepthValues values;
  auto const last = static_cast<Index>(std::ranges::max(settings.steps));
  for (Index draw = 0; draw < settings.draws; ++draw) {
    DepthStack stack(settings, skip, norm, depth, stream.child(static_cast<std::uint64_t>(draw)));
    auto const optimizer = make_optimizer(optimizer_choice(), stack.parameters);
    for (Index step = 0; step <= last; ++step) {
      stop_if_interrupted();
      if (step > 0) optimizer->step(settings.lr);
      DepthValues others;
      stack.measure(step, std::ranges::count(settings.steps, to_double(step)) > 0 ? values : others);
    }
  }
  CsvRows rows;
  for (auto const& [key, each] : values) {
    auto const& [step, layer, quantity] = key;
    if (std::ssize(each) < settings.draws) continue;
    auto const found = measured_mean(each);
    rows.push_back(line_of(skip, norm, depth, step, layer, quantity, csv_number(found.mean), csv_number(found.standard_error)));
  }
  return rows;
}

std::string skips_of(CsvLine const& line) {
  return line["skips"] == "none" ? "no skips" : line["skips"] == "one" ? "skips" : "skips, branches /√L";
}
std::string norm_of(CsvLine const& line) { return line["norm"] == "none" ? "no norm" : line["norm"] + "-norm"; }
std::string stack_of(CsvLine const& line) {
  return fmt::format("{}, {}{}", skips_of(line), norm_of(line), line["step"] == "0" ? "" : fmt::format(", after {} updates", line["step"]));
}

/// Whether log(−log r) is over twice as straight over the layer as −log r, which is a line for r = c e^(−a layer): by the standard errors
/// of the slopes, relative to these.
bool doubly_exponential(std::vector<double> const& layers, std::vector<double> const& log_logs) {
  auto const twice = fit_line(layers, log_logs), once = fit_line(layers, mapped(log_logs, [](double y) { return std::exp(y); }));
  return 2 * twice.standard_error.value() * std::abs(once.slope) < once.standard_error.value() * twice.slope;
}

/// The power of L in proportion to which all means are within a quarter, if their standard errors are, too.
std::string power_of_depth(CsvLines const& lines) {
  double const exponent = trend_over(lines, "depth", true).first;
  auto const factors = mapped(lines, [&](CsvLine const& line) { return line.number("mean") / std::pow(line.number("depth"), exponent); });
  auto const precise = [](CsvLine const& line) { return line.number("standard_error") <= line.number("mean") / 4; };
  bool const fits = std::ranges::max(factors) <= 1.25 * std::ranges::min(factors) && std::ranges::all_of(lines, precise);
  return fits ? "L^" + short_number(exponent, 2) : "no power of L";
}

StudyResult depth_report(CsvRows const& rows) {
  auto result = result_of({"skips", "norm", "depth", "step", "layer", "quantity", "mean", "standard_error"}, rows);
  auto const lines = csv_lines(result.csv, "results.csv");
  double const deepest = std::ranges::max(numbers_of(lines, "depth"));
  std::string const all_layers = "0", first_layer = "1";
  StudyTable table{"By depth",
                   {{"stack", "residual after the last", "‖∂L/∂W_q‖ of the first layer", "of the last", "of all", "‖∂L/∂W_k‖ of all",
                     "‖∂L/∂W_v‖ of all"}}};
  for (auto const& [name, of_stack] : grouped(lines, stack_of)) {
    CsvLines collapse;
    std::string share;  // of the deepest stack
    for (auto const& [depth, of_depth] : grouped(of_stack, by("depth"))) {
      auto const& line = of_depth.front();
      auto& row = table.rows.emplace_back(CsvRows::value_type{fmt::format("{}, L = {}", name, depth)});
      std::vector<double> shown;
      for (auto const& [quantity, layer] :
           {std::pair("residual", depth), std::pair("gradient_query", first_layer), std::pair("gradient_query", depth),
            std::pair("gradient_query", all_layers), std::pair("gradient_key", all_layers), std::pair("gradient_value", all_layers)})
        shown.push_back(lines_with(of_depth, {{"quantity", quantity}, {"layer", layer}}).at(0).number("mean"));
      for (double const value : shown) row.push_back(fmt::format("{:.3g}", value));
      if (line.number("depth") != deepest) continue;
      share = shown[2] <= least_share * shown[1] ? fmt::format("at most {:g} times the first's", least_share)
                                                 : fmt::format("{:.2g} times the first's", shown[2] / shown[1]);
      collapse = lines_with(of_depth, {{"quantity", "collapse"}});
    }
    if (collapse.size() > 2) {
      auto const layers = numbers_of(collapse, "layer"), log_logs = numbers_of(collapse, "mean");
      result.sentences.push_back(
          fmt::format("{0}: log(−log residual) rises by {1:.3f} a layer where the residual is between 1e-12 and 0.5 ({2} layers), "
                      "and is {3}much closer to a line than log residual: {3}doubly exponential",
                      name, fit_line(layers, log_logs).slope, collapse.size(), doubly_exponential(layers, log_logs) ? "" : "not "));
    }
    auto const totals = lines_with(of_stack, {{"quantity", "gradient_query"}, {"layer", all_layers}});
    if (totals.size() > 2)
      result.sentences.push_back(fmt::format(
          "{}: ‖∂L/∂W_q‖ of all layers together is {:.3g} at L = {} and {:.3g} at L = {}, fitted by {}; of {} layers the last has {}", name,
          totals.front().number("mean"), totals.front()["depth"], totals.back().number("mean"), totals.back()["depth"],
          power_of_depth(totals), deepest, share));
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

/// Adds a panel per norm, a line per kind of skips: a quantity by layer, up to the first below the least share.
void add_panels(Figure& figure, CsvLines const& lines, std::string const& quantity, std::string const& title) {
  auto const layer = [](CsvLine const& line) { return line["layer"] == "0" ? std::nan("") : line.number("layer"); };
  for (auto const& [norm, some] : grouped(lines_with(lines, {{"quantity", quantity}}), norm_of)) {
    auto curves = curves_of(grouped(some, skips_of), layer);
    for (auto& curve : curves) {
      auto& points = curve.points;
      double const least = least_share * points.front().y;
      points.erase(std::ranges::find_if(points, [least](CurvePoint const& point) { return point.y <= least; }), points.end());
    }
    figure.panels.push_back(panel_of(norm + title, std::move(curves), true));
  }
}

std::vector<StudyPart> depth_page(StudyRecord const& record) {
  auto const lines = csv_lines(record.csv, record.folder / "results.csv");
  auto const deepest = fmt::format("{}", std::ranges::max(numbers_of(lines, "depth")));
  std::vector<StudyPart> parts;
  for (auto const& [step, some] : grouped(lines_with(lines, {{"depth", deepest}}), by("step"))) {
    auto const when = step == "0" ? "at initialisation" : fmt::format("after {} updates", step);
    auto const caption = fmt::format(
        "By layer of a stack of {} layers, {}; means over draws ± 2 standard errors; an interval that reaches 0 ends at the axis. "
        "A curve ends before what is at most {:g} times its first value.",
        deepest, when, least_share);
    auto const suffix = step == "0" ? "" : "_" + step;
    Figure residuals{
        .name = "rank_collapse" + suffix, .title = "Share of the tokens that is not their mean", .caption = caption, .across = 3};
    add_panels(residuals, some, "residual", "");
    Figure gradients{.name = "gradients" + suffix, .title = "‖∂L/∂W‖ of queries, keys and values", .caption = caption, .across = 3};
    for (auto const& name : depth_projections) add_panels(gradients, some, "gradient_" + name, fmt::format(": W_{}", name.front()));
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
