#include "experiments/report/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/config/table.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/report/figures.hpp"
#include "experiments/report/traces.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace {

std::string unit_of(std::string const& metric) {
  auto const* const info = find_metric("validation." + metric);
  return info == nullptr ? "" : info->unit;
}

std::string range(Evaluation::Part const& part) {
  return part.shortest == part.longest ? fmt::format("{}", part.shortest) : fmt::format("{}–{}", part.shortest, part.longest);
}

/// Four significant digits.
std::string four_digits(double value) {
  if (std::isnan(value)) return "–";
  auto text = fmt::format("{:#.4g}", value);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// All digits, in a form that numpy and R read.
std::string exact_number(double value) {
  return std::isnan(value) ? "NaN" : std::isinf(value) ? (value < 0 ? "-inf" : "inf") : fmt::format("{}", value);
}

/// The names of the metrics, in their order.
std::vector<std::string> metrics_of(Evaluation const& evaluation) {
  std::vector<std::string> names;
  for (auto const& [name, value] : evaluation.whole.values.values) names.push_back(name);
  return names;
}

nlohmann::ordered_json json_of(Row const& row) {
  auto result = nlohmann::ordered_json::object();
  for (auto const& [name, value] : row.values) result[name] = number(value);
  return result;
}

std::string decoding(BeamSettings const& search) {
  return search.width == 1 ? "greedy" : fmt::format("beam of {}, length penalty {}", search.width, search.length_penalty);
}

double error_of(Evaluation::Part const& part, std::string const& metric) {
  double const* const error = part.errors.find(metric);
  return error == nullptr ? std::numeric_limits<double>::quiet_NaN() : *error;
}

std::string with_error(double value, double error) {
  return std::isfinite(error) && std::isfinite(value) ? measured(value, Interval{value - error, value + error}, "") : four_digits(value);
}

/// A group that has a value.
struct LengthPoint {
  double length;  ///< mean
  double value;
  double error;  ///< 0 where it is not known
};

std::vector<LengthPoint> points(Evaluation const& evaluation, std::string const& metric) {
  std::vector<LengthPoint> result;
  for (auto const& part : evaluation.by_length) {
    double const* const value = part.values.find(metric);
    if (value == nullptr || !std::isfinite(*value)) continue;
    double const error = error_of(part, metric);
    result.push_back({part.mean, *value, std::isfinite(error) ? error : 0});
  }
  return result;
}

/// Two in a row; below the lowest the name of their axis.
PanelGrid layout_of(std::size_t count) {
  return {.count = count,
          .across = 2,
          .left = 0.5,
          .gap = 0.65,
          .width = Figure::width / 2 - 0.65,
          .height = 0.83,
          .head = 0.22,
          .foot = 0.25,
          .below = 0.2};
}

/// The panel's axis of values, which goes below 0 only where values do.
std::string y_axis(std::vector<LengthPoint> const& values) {
  Range range;
  bool positive = true;
  for (LengthPoint const& point : values) {
    positive = positive && point.value >= 0;
    range.include(point.value - point.error);
    range.include(point.value + point.error);
  }
  range.widen(0.1);
  if (range.is_empty()) range = {range.low - 0.5, range.low + 0.5};
  if (positive) range.low = std::max(range.low, 0.0);
  return fmt::format("set yrange [{:.8g}:{:.8g}]\nset ytics {:.8g}\n", range.low, range.high, tick_step(range.high - range.low, 5));
}

std::string panel(Evaluation const& evaluation, std::string const& metric, std::size_t number, PanelGrid const& layout) {
  auto const values = points(evaluation, metric);
  auto const unit = unit_of(metric);
  std::string block = fmt::format("$m{} << EOD\n", number);
  for (LengthPoint const& point : values) block += fmt::format("{} {} {}\n", point.length, point.value, point.error);
  return block + "EOD\n" + layout.place(number) + y_axis(values) +
         fmt::format("set title {} offset 0,-0.7\n", gnuplot_text(unit.empty() ? metric : fmt::format("{} ({})", metric, unit))) +
         (layout.lowest(number)
              ? fmt::format("set xlabel {} offset 0,1\n", gnuplot_text(fmt::format("length of the {} (tokens)", evaluation.length_of)))
              : "unset xlabel\n") +
         fmt::format(
             "plot $m{0} using 1:2 with linespoints lc rgb '{1}' lw 1.5 pt 7 ps 0.5 notitle, "
             "'' using 1:2:3 with yerrorbars lc rgb '{1}' lw 1 pt 7 ps 0 notitle\n",
             number, line_colour(1));
}

/// Nothing without a metric that has values in two groups or more.
std::optional<Figure> figure(Evaluation const& evaluation) {
  std::vector<std::string> shown;
  for (auto const& name : metrics_of(evaluation)) {
    bool const one_of_many = find_metric("validation." + name)->name.ends_with('*');
    if (!one_of_many && points(evaluation, name).size() > 1) shown.push_back(name);
  }
  if (shown.empty()) return std::nullopt;
  auto const layout = layout_of(shown.size());
  Figure result{.name = "metrics_by_length",
                .title = fmt::format("{} by the length of the {}", evaluation.split, evaluation.length_of),
                .caption = fmt::format("Each point is a group of sequences, at their mean length, with a standard error from a jackknife "
                                       "over {} parts: uncertainty over the evaluation data, not over seeds.",
                                       max_folds),
                .height = layout.figure_height(),
                .commands = ""};
  result.commands = std::string(plot_style) + "set multiplot\nset xtics offset 0,0.4\nset offsets graph 0.03, graph 0.03, 0, 0\n";
  for (std::size_t i = 0; i < shown.size(); ++i) result.commands += panel(evaluation, shown[i], i, layout);
  result.commands += "unset multiplot\n";
  return result;
}

/// "reference losses in nat: 4-gram 5.92 (perplexity 373), …"; "": there are none.
std::string references_of(Evaluation const& evaluation) {
  std::string text;
  for (auto const& [name, loss] : evaluation.references)
    text += fmt::format("{}{} {:.3f} (perplexity {:.4g})", text.empty() ? "" : ", ", name, loss, std::exp(loss));
  return text.empty() ? "" : fmt::format("reference losses in nat: {}\n", text);
}

}  // namespace

std::string table_of(Evaluation const& evaluation) {
  std::vector<Evaluation::Part const*> parts{&evaluation.whole};
  for (auto const& part : evaluation.by_length) parts.push_back(&part);
  std::vector<std::vector<std::string>> rows{
      {evaluation.by_length.empty() ? "" : fmt::format("length of the {}", evaluation.length_of), "", "all"}, {"rows", ""}};
  for (std::size_t i = 1; i < parts.size(); ++i) rows[0].push_back(range(*parts[i]));
  for (auto const* const part : parts) rows[1].push_back(fmt::format("{}", part->rows));
  for (auto const& name : metrics_of(evaluation)) {
    rows.push_back({name, unit_of(name)});
    for (auto const* const part : parts) {
      double const* const value = part->values.find(name);
      rows.back().push_back(value == nullptr ? "–" : with_error(*value, error_of(*part, name)));
    }
  }
  return fmt::format("{}: step {}, {} weights, {}{}\n", evaluation.run, evaluation.step, evaluation.weights, evaluation.split,
                     evaluation.search ? fmt::format(", decoded: {}", decoding(*evaluation.search)) : "") +
         table(rows) + references_of(evaluation);
}

std::string csv_of(Evaluation const& evaluation) {
  std::string text = csv_line({"metric", "unit", "length", "shortest", "longest", "rows", "value", "standard_error"});
  auto const add = [&](std::string const& name, std::string const& length, Evaluation::Part const& part) {
    if (double const* const value = part.values.find(name))
      text += csv_line({name, unit_of(name), length, fmt::format("{}", part.shortest), fmt::format("{}", part.longest),
                        fmt::format("{}", part.rows), exact_number(*value), exact_number(error_of(part, name))});
  };
  for (auto const& name : metrics_of(evaluation)) {
    add(name, "all", evaluation.whole);
    for (auto const& part : evaluation.by_length) add(name, fmt::format("{}", part.mean), part);
  }
  return text;
}

std::string json_of(Evaluation const& evaluation) {
  nlohmann::ordered_json result{{"run", evaluation.run},
                                {"step", evaluation.step},
                                {"weights", evaluation.weights},
                                {"split", evaluation.split},
                                {"rows", evaluation.whole.rows}};
  if (evaluation.search) {
    result["decoding"]["beam"] = evaluation.search->width;
    if (evaluation.search->width > 1) result["decoding"]["length_penalty"] = evaluation.search->length_penalty;
  }
  result["metrics"] = json_of(evaluation.whole.values);
  result["standard_errors"] = json_of(evaluation.whole.errors);
  if (!evaluation.by_length.empty()) result["length_of"] = evaluation.length_of;
  for (auto const& part : evaluation.by_length)
    result["by_length"].push_back({{"shortest", part.shortest},
                                   {"longest", part.longest},
                                   {"mean", part.mean},
                                   {"rows", part.rows},
                                   {"metrics", json_of(part.values)},
                                   {"standard_errors", json_of(part.errors)}});
  for (auto const& [name, loss] : evaluation.references) result["references"][name] = loss;
  result["environment"] = environment();
  return json_text(result, 2) + "\n";
}

std::optional<std::map<std::string, std::string>> draw_by_length(Evaluation const& evaluation) {
  std::map<std::string, std::string> files;
  auto const drawn = figure(evaluation);
  if (!drawn) return files;
  auto const drawings = draw({*drawn});
  if (!drawings) return std::nullopt;
  files[drawn->name + ".svg"] = drawings->front().svg;
  files[drawn->name + ".pdf"] = drawings->front().pdf;
  return files;
}

}  // namespace heed
