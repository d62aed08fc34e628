#include "experiments/report/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/config/table.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/report/gnuplot.hpp"
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

/// The names of the metrics, in their order.
std::vector<std::string> metrics_of(Evaluation const& evaluation) {
  return mapped(evaluation.whole.values.values, [](auto const& named) { return named.first; });
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

/// The groups that have a value, at their mean lengths, with standard errors where these are known.
Curve points(Evaluation const& evaluation, std::string const& metric) {
  Curve result;
  for (auto const& part : evaluation.by_length) {
    double const* const value = part.values.find(metric);
    if (value == nullptr || !std::isfinite(*value)) continue;
    double const known = error_of(part, metric), error = std::isfinite(known) ? known : 0;
    result.push_back({part.mean, *value, *value - error, *value + error});
  }
  return result;
}

/// The panel of a metric; its axis goes below 0 only where values do.
Panel length_panel(Evaluation const& evaluation, std::string const& metric) {
  auto const values = points(evaluation, metric);
  auto const unit = unit_of(metric);
  Range lengths, range;
  for (CurvePoint const& point : values) lengths.include(point.x), range.include(point);
  lengths.widen(0.03), range.widen(0.1);
  if (range.is_empty()) range = {range.low - 0.5, range.low + 0.5};
  if (lengths.is_empty()) lengths = {lengths.low - 0.5, lengths.low + 0.5};
  if (std::ranges::all_of(values, [](CurvePoint const& point) { return point.y >= 0; })) range.low = std::max(range.low, 0.0);
  return {.title = unit.empty() ? metric : fmt::format("{} ({})", metric, unit),
          .x = axis_over(lengths, fmt::format("length of the {} (tokens)", evaluation.length_of)),
          .y = axis_over(range),
          .layers = {{As::joined_intervals, values, {.colour = line_colour(1)}}}};
}

/// Nothing without a metric that has values in two groups or more.
std::optional<Figure> figure(Evaluation const& evaluation) {
  Figure result{.name = "metrics_by_length",
                .title = fmt::format("{} by the length of the {}", evaluation.split, evaluation.length_of),
                .caption = fmt::format("Each point is a group of sequences, at their mean length, with a standard error from a jackknife "
                                       "over {} parts: uncertainty over the evaluation data, not over seeds.",
                                       max_folds),
                .across = 2,
                .frame_height = 0.83};
  for (auto const& name : metrics_of(evaluation)) {
    bool const one_of_many = find_metric("validation." + name)->name.ends_with('*');
    if (!one_of_many && points(evaluation, name).size() > 1) result.panels.push_back(length_panel(evaluation, name));
  }
  return result.panels.empty() ? std::nullopt : std::optional(result);
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
  return fmt::format("{}: step {}, {} weights, {}{}; ± is a standard error\n", evaluation.run, evaluation.step, evaluation.weights,
                     evaluation.split, evaluation.search ? fmt::format(", decoded: {}", decoding(*evaluation.search)) : "") +
         table(rows) + references_of(evaluation);
}

std::string csv_of(Evaluation const& evaluation) {
  std::string text = csv_line({"metric", "unit", "length", "shortest", "longest", "rows", "value", "standard_error"});
  auto const add = [&](std::string const& name, std::string const& length, Evaluation::Part const& part) {
    if (double const* const value = part.values.find(name))
      text += csv_line({name, unit_of(name), length, fmt::format("{}", part.shortest), fmt::format("{}", part.longest),
                        fmt::format("{}", part.rows), csv_number(*value), csv_number(error_of(part, name))});
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

std::optional<std::map<std::string, std::string>> drawn_files(std::optional<Figure> const& figure) {
  std::map<std::string, std::string> files;
  if (!figure) return files;
  auto const drawings = draw({*figure});
  if (!drawings) return std::nullopt;
  return files = {{figure->name + ".svg", drawings->front().svg}, {figure->name + ".pdf", drawings->front().pdf}};
}

std::optional<std::map<std::string, std::string>> draw_by_length(Evaluation const& evaluation) { return drawn_files(figure(evaluation)); }

}  // namespace heed
