// The coordinate check of a parametrization (Yang et al. 2022, appendix D.1): the size of a small GPT's activations over its width, after
// some steps of Adam. With a parametrization under which rates carry over from width to width it is the same at all widths.

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/report/figure.hpp"
#include "experiments/study/samples.hpp"
#include "experiments/study/study.hpp"
#include "nn/models/blocks.hpp"
#include "nn/optimizer.hpp"

namespace heed {

namespace {

struct CoordinatesSettings : Settings {
  std::vector<std::string> parametrization{"standard", "mup"};
  std::vector<double> width{64, 128, 256, 512}, steps{0, 1, 3, 10};
  Index base = 64, layers = 2, heads = 4, draws = 3;
  double lr = 0.005;

  std::vector<Field> fields() override {
    return {field(&parametrization, "parametrization", "standard, mup").one_of({"standard", "mup"}),
            field(&width, "width", "widths of the residual stream, integers that `heads` divides").in(1, 8192).integers(),
            field(&steps, "steps", "numbers of updates after which activations are measured, integers").in(0, 10'000).integers(),
            field(&base, "base", "mup: the width at which it equals standard").in(1, 8192),
            field(&layers, "layers", "blocks").in(1, 100),
            field(&heads, "heads", "attention heads").in(1, 100),
            field(&draws, "draws", "draws of weights and tokens").in(2, 1000),
            field(&lr, "lr", "learning rate of AdamW, at width base").above(0)};
  }
  std::optional<std::string> contradiction() override {
    for (auto const& [name, values] : {std::pair("width", &width), std::pair("steps", &steps)})
      if (values->empty()) return fmt::format("{}: the list is empty", name);
    for (double const value : width)
      if (std::fmod(value, to_double(heads)) != 0) return fmt::format("width: {} heads do not divide {}", heads, value);
    if (base % heads != 0) return fmt::format("base: {} heads do not divide {}", heads, base);
    return std::nullopt;
  }
};

/// By name of an activation and number of updates: the mean of |x| over its entries.
using ActivationSizes = std::map<std::pair<std::string, Index>, double>;

double mean_size(Tensor const& x) { return mean(abs(x.detach())).item(); }

/// Of one draw: random tokens and targets, the same in all steps.
ActivationSizes sizes_of(CoordinatesSettings const& settings, std::string const& kind, Index width, Stream const& stream) {
  WithGrad const recorded;
  constexpr Index vocabulary = 64, context = 16, rows = 4;
  StackSettings model;
  model.layers = settings.layers, model.heads = settings.heads, model.width = width, model.context = context;
  model.parametrization.kind = kind;
  if (kind == "mup") model.parametrization.base = settings.base;
  Parameters parameters(stream.child("weights").bits(0) >> 1, DType::float32);
  Gpt const gpt(parameters, model, vocabulary);
  auto const optimizer = make_optimizer(optimizer_choice(), parameters);
  auto const tokens = [&](std::string const& name) {
    std::vector<Index> drawn(rows * context);
    for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] = static_cast<Index>(stream.child(name).below(i, vocabulary));
    return Tensor::of(drawn, {rows, context});
  };
  Batch const batch{{"inputs", tokens("inputs")}, {"targets", tokens("targets")}};
  ActivationSizes sizes;
  for (Index step = 0, last = static_cast<Index>(std::ranges::max(settings.steps)); step <= last; ++step) {
    Observer observer;
    observer.stream = [&](std::string const& layer, Tensor const& x) { sizes[{layer, step}] = mean_size(x); };
    Pass pass;
    pass.watching.observer = &observer;
    sizes[{"logits", step}] = mean_size(gpt.logits(batch, pass));
    if (step == last) break;
    parameters.clear_gradients();
    gpt.loss(batch, {}).backward();
    optimizer->step(settings.lr);
  }
  return sizes;
}

CsvRows coordinates_cell(CoordinatesSettings const& settings, std::string const& kind, Index width, Stream const& stream) {
  std::map<std::pair<std::string, Index>, std::vector<double>> all;
  for (Index draw = 0; draw < settings.draws; ++draw) {
    stop_if_interrupted();
    for (auto const& [key, size] : sizes_of(settings, kind, width, stream.child(static_cast<std::uint64_t>(draw))))
      all[key].push_back(size);
  }
  CsvRows rows;
  for (auto const& [key, values] : all) {
    if (std::ranges::find(settings.steps, to_double(key.second)) == settings.steps.end()) continue;
    auto const found = measured_mean(values);
    rows.push_back({kind, fmt::format("{}", width), key.first, fmt::format("{}", key.second), csv_number(found.mean),
                    csv_number(found.standard_error)});
  }
  return rows;
}

StudyResult coordinates_report(CsvRows const& rows) {
  auto result = result_of({"parametrization", "width", "activation", "step", "mean", "standard_error"}, rows);
  std::map<std::tuple<std::string, std::string, Index>, std::pair<std::vector<double>, std::vector<double>>> logs;
  Index last = 0;
  for (auto const& line : csv_lines(result.csv, "results.csv")) {
    auto& of = logs[{line["parametrization"], line["activation"], line.number<Index>("step")}];
    of.first.push_back(std::log(line.number("width"))), of.second.push_back(std::log(line.number("mean")));
    last = std::max(last, line.number<Index>("step"));
  }
  StudyTable table{"Exponents of the mean of |x| over the width", {{"parametrization", "activation", "steps", "exponent"}}};
  for (auto const& [key, of] : logs) {
    auto const& [kind, activation, step] = key;
    if (of.first.size() < 2) continue;
    double const slope = fit_line(of.first, of.second).slope;
    table.rows.push_back({kind, activation, fmt::format("{}", step), fmt::format("{:.2f}", slope)});
    if (step == last)
      result.sentences.push_back(fmt::format("{}: after {} steps {} go as the width to the power {:.2f}", kind, step, activation, slope));
  }
  result.tables = {table};
  return result;
}

Study coordinates(CoordinatesSettings const& settings, StudyContext const& context) {
  Study study;
  Stream const stream(context.seed, "coordinates");
  for (auto const& kind : settings.parametrization)
    for (double const width : settings.width)
      study.cells.push_back({fmt::format("{}, width {:g}", kind, width), [&settings, kind, width, stream] {
                               return coordinates_cell(settings, kind, static_cast<Index>(width), stream);
                             }});
  study.report = coordinates_report;
  return study;
}

/// A panel per activation and parametrization, a line per number of steps.
std::vector<StudyPart> coordinates_page(StudyRecord const& record) {
  Figure figure{
      .name = "coordinates",
      .title = "Size of activations over the width",
      .caption =
          "Mean of |x| over entries, with two standard errors over draws, after so many steps of AdamW. With mup initial logits go "
          "as 1/√width, what is learned keeps its size.",
      .across = 2};
  std::map<std::string, std::map<std::string, std::map<Index, Curve>>> all;
  for (auto const& line : csv_lines(record.csv, record.folder / "results.csv")) {
    auto& points = all[line["activation"]][line["parametrization"]][line.number<Index>("step")];
    points.push_back(point_at(line, line.number("width")));
    points.back().low = std::max(points.back().low, points.back().y / 10);
  }
  for (auto const& [activation, kinds] : all) {
    std::vector<FigureLayer> both;
    for (auto const& [kind, steps] : kinds) {
      Panel panel{.title = fmt::format("{}: {}", kind, activation)};
      for (auto const& [step, points] : steps)
        panel.layers.push_back({As::joined_intervals, points, look_of(panel.layers.size()), fmt::format("step {}", step)});
      both.insert(both.end(), panel.layers.begin(), panel.layers.end());
      figure.panels.push_back(std::move(panel));
    }
    for (auto panel = figure.panels.end() - std::ssize(kinds); panel != figure.panels.end(); ++panel) panel->y = axis_over(both, true);
  }
  share_x(figure, "width", Ticks::twos);
  return {{.title = "Size of activations", .html = "", .figures = {figure}}};
}

Declared<StudyKind> const coordinates_study{
    study_kind("coordinates", "size of activations over the width after steps of AdamW, standard and mup", coordinates, coordinates_page)};

}  // namespace

}  // namespace heed
