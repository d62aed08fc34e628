// The coordinate check of a parametrization (Yang et al. 2022, appendix D.1): the size of a small GPT's activations over its width, after
// some steps of Adam. With a parametrization under which rates carry over from width to width it is the same at all widths.

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "experiments/config/table.hpp"
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
            field(&width, "width", "widths of the residual stream, integers that `heads` divides").in(1, 8192).integers().filled(),
            field(&steps, "steps", "numbers of updates after which activations are measured, integers").in(0, 10'000).integers().filled(),
            field(&base, "base", "mup: the width at which it equals standard").in(1, 8192),
            field(&layers, "layers", "blocks").in(1, 100),
            field(&heads, "heads", "attention heads").in(1, 100),
            field(&draws, "draws", "draws of weights and tokens").in(2, 1000),
            field(&lr, "lr", "learning rate of AdamW, at width base").above(0)};
  }
  std::optional<std::string> contradiction() override {
    for (double const value : width)
      if (std::fmod(value, to_double(heads)) != 0) return fmt::format("width: {} heads do not divide {}", heads, value);
    if (base % heads != 0) return fmt::format("base: {} heads do not divide {}", heads, base);
    return std::nullopt;
  }
};

/// By activation and number of updates, the mean of |x| over its entries in each draw.
using ActivationSizes = std::map<std::pair<std::string, Index>, std::vector<double>>;

/// Adds one draw: random tokens and targets, the same in all steps.
void add_sizes(CoordinatesSettings const& settings, std::string const& kind, Index width, Stream const& stream, ActivationSizes& sizes) {
  WithGrad const recorded;
  constexpr Index vocabulary = 64, context = 16, rows = 4;
  StackSettings model;
  model.layers = settings.layers, model.heads = settings.heads, model.width = width, model.context = context;
  model.parametrization.kind = kind;
  if (kind == "mup") model.parametrization.base = settings.base;
  Parameters parameters(stream.child("weights").bits(0) >> 1, DType::float32);
  Gpt const gpt(parameters, model, vocabulary);
  auto const optimizer = make_optimizer(optimizer_choice(), parameters);
  Batch const batch = random_batch(stream, rows, context, vocabulary);
  for (Index step = 0;; ++step) {
    if (std::ranges::find(settings.steps, to_double(step)) != settings.steps.end()) {
      auto const add = [&](std::string const& name, Tensor const& x) { sizes[{name, step}].push_back(mean(abs(x.detach())).item()); };
      Observer observer;
      observer.stream = add;
      Pass pass;
      pass.watching.observer = &observer;
      add("logits", gpt.logits(batch, pass));
    }
    if (to_double(step) == std::ranges::max(settings.steps)) return;
    parameters.clear_gradients();
    gpt.loss(batch, {}).backward();
    optimizer->step(settings.lr);
  }
}

CsvRows coordinates_cell(CoordinatesSettings const& settings, std::string const& kind, Index width, Stream const& stream) {
  ActivationSizes sizes;
  for (Index draw = 0; draw < settings.draws; ++draw) {
    stop_if_interrupted();
    add_sizes(settings, kind, width, stream.child(static_cast<std::uint64_t>(draw)), sizes);
  }
  return mapped(sizes, [&](auto const& each) {
    auto const [mean, error, theory] = measured_mean(each.second);
    return line_of(kind, width, each.first.first, each.first.second, csv_number(mean), csv_number(error));
  });
}

StudyResult coordinates_report(CsvRows const& rows) {
  auto result = result_of({"parametrization", "width", "activation", "step", "mean", "standard_error"}, rows);
  auto const lines = csv_lines(result.csv, "results.csv");
  auto const last = std::ranges::max(numbers_of(lines, "step"));
  StudyTable table{"Exponents of the mean of |x| over the width", {{"activation", "exponent"}}};
  auto const what = [](CsvLine const& line) {
    return fmt::format("{}, {}, after {} steps", line["parametrization"], line["activation"], line["step"]);
  };
  for (auto const& group : grouped(lines, what)) {
    if (group.lines.size() < 2) continue;
    double const exponent = trend_over(group.lines, "width", true).first;
    table.rows.push_back({group.name, short_number(exponent, 2)});
    if (group.lines.front().number("step") == last)
      result.sentences.push_back(group.name + (std::isfinite(exponent)
                                                   ? ": the mean of |x| goes as the width to the power " + short_number(exponent, 2)
                                                   : ": the mean of |x| is not finite, or 0, at some width"));
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
  auto const curves = [](CsvLines const& lines, NameOf const& name_of) { return curves_of(grouped(lines, name_of), over("width")); };
  for (auto const& [activation, both] : grouped(csv_lines(record.csv, record.folder / "results.csv"), by("activation"))) {
    auto const y = panel_of("", curves(both, [](CsvLine const& line) { return line["parametrization"] + line["step"]; }), true).y;
    for (auto const& [kind, lines] : grouped(both, by("parametrization"))) {
      figure.panels.push_back(panel_of(fmt::format("{}: {}", kind, activation), curves(lines, by("step", "step {}")), true));
      figure.panels.back().y = y;
    }
  }
  share_x(figure, "width", Ticks::twos);
  return {{.title = "Size of activations", .html = "", .figures = {figure}}};
}

Declared<StudyKind> const coordinates_study{
    study_kind("coordinates", "size of activations over the width after steps of AdamW, standard and mup", coordinates, coordinates_page)};

}  // namespace

}  // namespace heed
