// Estimates, tables and figures of a suite.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/random.hpp"
#include "experiments/config/table.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/report/material.hpp"
#include "experiments/report/parts.hpp"
#include "experiments/report/report.hpp"
#include "experiments/suite/suite.hpp"
#include "nn/files/atomic_file.hpp"

namespace heed {

namespace {

std::optional<Interval> percentiles(std::vector<double> replicates) {
  if (!std::ranges::all_of(replicates, [](double value) { return std::isfinite(value); })) return std::nullopt;
  std::ranges::sort(replicates);
  return Interval{quantile_of(replicates, 0.025), quantile_of(replicates, 0.975)};
}

/// A line of results.csv: a quantity of an arm with one seed, in one task, or (no task) over all.
struct SuiteLine {
  std::string task, arm, seed, quantity;
  double value = 0;
  std::optional<Interval> interval = {};

  std::string in_words() const {
    if (std::isnan(value)) return "–";
    if (quantity == "parameters" || quantity == "tokens_per_second") return fmt::format("{:.0f}", value);
    NumberFormat const numbers(1);
    if (quantity == "difference") return shown_difference(numbers, value, interval);
    return numbers(value) + (interval ? " " + numbers.interval(interval->low, interval->high) : "");
  }
  CurvePoint at(double x) const { return {x, value, interval ? interval->low : value, interval ? interval->high : value}; }
};
using SuiteLines = std::vector<SuiteLine>;

SuiteLines lines_of(SuiteLines const& lines, std::string const& task, std::string const& quantity) {
  SuiteLines chosen;
  std::ranges::copy_if(lines, std::back_inserter(chosen), [&](auto const& line) { return line.task == task && line.quantity == quantity; });
  return chosen;
}

/// What the ablations say of each task and arm, and over all tasks. Of `seeds` those stay that every arm has finished in every task.
SuiteLines lines_of(Suite const& suite, std::vector<Index>& seeds) {
  Ablation const& first = suite.tasks.front().ablation;
  auto const materials = mapped(suite.tasks, [](SuiteTask const& task) { return read_material(task.ablation.folder()); });
  for (auto const& material : materials)
    for (auto const& arm : material.arms) std::erase_if(seeds, [&](Index seed) { return !arm.values.contains(seed); });
  if (seeds.empty()) throw Error(fmt::format("{}: there is no seed that every arm has finished in every task", suite.folder.string()));
  SuiteLines lines;
  std::map<std::string, std::vector<double>> scores;
  std::map<std::string, double> parameters, logarithms;  // means over tasks
  for (std::size_t i = 0; i < materials.size(); ++i)
    for (auto const& arm : materials[i].arms) {
      auto const add = [&](std::string const& seed, char const* quantity, double value, std::optional<Interval> const& interval = {}) {
        lines.push_back({suite.tasks[i].name, arm.name, seed, quantity, value, interval});
      };
      auto const size = static_cast<double>(arm.parameters), speed = arm.tokens_per_second.value_or(std::nan(""));
      if (arm.estimate) add("", "mean", arm.estimate->mean, arm.estimate->interval);
      if (arm.difference) add("", "difference", arm.difference->mean, arm.difference->interval);
      add("", "parameters", size);
      add("", "tokens_per_second", speed);
      for (auto const& [seed, value] : arm.values) add(fmt::format("{}", seed), "score", value);
      for (auto const seed : seeds) scores[arm.name].push_back(arm.values.at(seed));
      parameters[arm.name] += size / static_cast<double>(materials.size());
      logarithms[arm.name] += std::log(speed) / static_cast<double>(materials.size());
    }
  auto const estimates =
      suite_estimates(mapped(first.arms, [&](Arm const& arm) { return scores[arm.name]; }), seeds.size(), first.baseline);
  for (std::size_t arm = 0; arm < estimates.size(); ++arm) {
    auto const& name = first.arms[arm].name;
    lines.push_back({"", name, "", "interquartile_mean", estimates[arm].mean, estimates[arm].interval});
    if (arm != first.baseline) lines.push_back({"", name, "", "difference", estimates[arm].difference, estimates[arm].difference_interval});
    lines.push_back({"", name, "", "parameters", parameters[name]});
    lines.push_back({"", name, "", "tokens_per_second", std::exp(logarithms[name])});
  }
  return lines;
}

/// A row an arm, a column for each task and quantity.
StudyTable table_of(SuiteLines const& lines, std::string title, std::vector<std::pair<std::string, std::string>> const& columns) {
  StudyTable made{.title = std::move(title), .rows = {{"arm"}}};
  for (auto const& arm : mapped(lines_of(lines, "", "parameters"), &SuiteLine::arm)) made.rows.push_back({arm});
  for (auto const& [task, quantity] : columns) {
    auto head = task.empty() ? quantity : task;
    std::ranges::replace(head, '_', task.empty() ? ' ' : '_');
    made.rows.front().push_back(head);
    auto const column = lines_of(lines, task, quantity);
    for (std::size_t i = 1; i < made.rows.size(); ++i) {
      auto const line = std::ranges::find(column, made.rows[i].front(), &SuiteLine::arm);
      made.rows[i].push_back(line == column.end() ? "" : line->in_words());
    }
  }
  return made;
}

std::vector<StudyTable> tables_of(Suite const& suite, SuiteLines const& lines) {
  auto const& first = suite.tasks.front().ablation;
  auto const by_task = [&](std::string const& title, std::string const& quantity) {
    return table_of(lines, title, mapped(suite.tasks, [&](SuiteTask const& task) { return std::pair(task.name, quantity); }));
  };
  auto const baseline = first.arms[first.baseline].name;
  return {table_of(lines, "Over all tasks, differences to " + baseline,
                   {{"", "interquartile_mean"}, {"", "difference"}, {"", "parameters"}, {"", "tokens_per_second"}}),
          by_task("Means by task", "mean"), by_task("Paired differences to " + baseline + " by task", "difference")};
}

/// Arms as rows, with intervals across.
Panel rows_panel(std::string title, std::vector<std::string> const& arms, SuiteLines const& lines, std::string const& axis) {
  Panel panel{.title = std::move(title), .y = axis_of_rows(arms)};
  Range range;
  for (auto const& line : lines) {
    if (line.quantity == "difference") range.include(0), panel.guides = {{.at = 0, .upright = true, .colour = limit_colour}};
    if (!std::isfinite(line.value)) continue;
    auto const point = line.at(static_cast<double>(std::ranges::find(arms, line.arm) - arms.begin()));
    range.include(point);
    panel.layers.push_back(
        {As::intervals_across, {{point.y, point.x, point.low, point.high}}, {.colour = line_colour(1), .width = 1.6, .size = 0.6}});
  }
  range.widen(0.06);
  panel.x = axis_over(range, axis);
  return panel;
}

/// Interquartile means against what an arm costs.
Panel costs_panel(SuiteLines const& means, SuiteLines const& costs, std::string const& axis) {
  Panel panel;
  Range range, scores;
  for (std::size_t i = 0; i < means.size(); ++i) {
    panel.layers.push_back({As::intervals, {}, solid_look(i), means[i].arm});
    if (!std::isfinite(means[i].value) || !std::isfinite(costs[i].value)) continue;
    panel.layers.back().points = {means[i].at(costs[i].value)};
    range.include(costs[i].value);
    scores.include(panel.layers.back().points.front());
  }
  range.widen(0.1);
  scores.widen(0.07);
  panel.x = axis_over(range, axis, 4);
  panel.y = axis_over(scores, "interquartile mean");
  return panel;
}

std::vector<StudyPart> present(StudyRecord const& record) {
  SuiteLines lines;
  std::vector<std::string> tasks;
  for (auto const& line : csv_lines(record.csv, record.folder / "results.csv")) {
    lines.push_back({line["task"], line["arm"], line["seed"], line["quantity"], line.number("value")});
    if (!line["low"].empty()) lines.back().interval = {line.number("low"), line.number("high")};
    if (!line["task"].empty() && std::ranges::find(tasks, line["task"]) == tasks.end()) tasks.push_back(line["task"]);
  }
  auto const means = lines_of(lines, "", "interquartile_mean"), differences = lines_of(lines, "", "difference");
  auto const arms = mapped(means, &SuiteLine::arm), others = mapped(differences, &SuiteLine::arm);
  auto const baseline = *std::ranges::find_if(arms, [&](auto const& arm) { return std::ranges::count(others, arm) == 0; });
  double const high = 0.1 + 0.21 * static_cast<double>(means.size());
  Figure all{.name = "interquartile_mean",
             .title = "Interquartile mean over all tasks",
             .caption =
                 "Mean of the middle half of all scores, and its difference to the baseline; bars: 95 % intervals by a bootstrap of "
                 "seeds within each task.",
             .panels = {rows_panel("", arms, means, "interquartile mean"), rows_panel("", arms, differences, "difference to " + baseline)},
             .across = 2,
             .shared_y = true,
             .frame_height = high};
  Figure costs{.name = "costs",
               .title = "Score against size and speed",
               .caption =
                   "Interquartile means with 95 % intervals. Parameters: mean over tasks; tokens per second: geometric mean over "
                   "tasks, in training beside other trials.",
               .panels = {costs_panel(means, lines_of(lines, "", "parameters"), "parameters"),
                          costs_panel(means, lines_of(lines, "", "tokens_per_second"), "tokens per second")},
               .across = 2,
               .shared_y = true};
  for (auto const& layer : costs.panels.front().layers) costs.legend.push_back({layer.name, layer.look, As::dots});
  Figure by_task{.name = "tasks",
                 .title = "Paired differences by task",
                 .caption = "Differences to the baseline within a seed: means with 95 % intervals, not corrected for the number of tasks.",
                 .across = 3,
                 .shared_y = true,
                 .frame_height = high};
  for (auto const& task : tasks) by_task.panels.push_back(rows_panel(task, others, lines_of(lines, task, "difference"), ""));
  return {{.title = "Over all tasks", .html = "", .figures = {std::move(all), std::move(costs), std::move(by_task)}}};
}

Declared<StudyPage> const suite_page{{"suite", "several tasks, with the same arms", present}};

}  // namespace

double interquartile_mean(std::vector<double> scores) {
  std::ranges::sort(scores);
  auto const cut = static_cast<std::ptrdiff_t>(scores.size() / 4), left = std::ssize(scores) - 2 * cut;
  return std::accumulate(scores.begin() + cut, scores.end() - cut, 0.0) / static_cast<double>(left);
}

std::vector<SuiteEstimate> suite_estimates(std::vector<std::vector<double>> const& arms, std::size_t seeds, std::size_t baseline,
                                           std::size_t resamples) {
  std::vector<SuiteEstimate> estimates(arms.size());
  for (std::size_t arm = 0; arm < arms.size(); ++arm) estimates[arm].mean = interquartile_mean(arms[arm]);
  for (auto& each : estimates) each.difference = each.mean - estimates[baseline].mean;
  if (seeds < 2) return estimates;

  std::size_t const size = arms.front().size();
  Stream const stream(0, "suite");
  std::vector<std::size_t> chosen(size);
  std::vector<double> drawn(size);
  std::vector<std::vector<double>> replicates(arms.size(), std::vector<double>(resamples));
  for (std::size_t r = 0; r < resamples; ++r) {
    for (std::size_t i = 0; i < size; ++i) chosen[i] = i / seeds * seeds + stream.below(r * size + i, seeds);
    for (std::size_t arm = 0; arm < arms.size(); ++arm) {
      for (std::size_t i = 0; i < size; ++i) drawn[i] = arms[arm][chosen[i]];
      replicates[arm][r] = interquartile_mean(drawn);
    }
  }
  for (std::size_t arm = 0; arm < arms.size(); ++arm) {
    estimates[arm].interval = percentiles(replicates[arm]);
    if (arm == baseline) continue;
    auto differences = replicates[arm];
    for (std::size_t r = 0; r < resamples; ++r) differences[r] -= replicates[baseline][r];
    estimates[arm].difference_interval = percentiles(std::move(differences));
  }
  return estimates;
}

std::string write_suite(Suite const& suite) {
  auto seeds = suite.tasks.front().ablation.seeds;
  auto const all_seeds = seeds.size();
  auto const lines = lines_of(suite, seeds);
  nlohmann::ordered_json summary{{"study", "suite"}, {"name", suite.name}, {"finished", true}, {"environment", environment()}};
  std::string page, markdown = fmt::format("# {}\n", suite.name);
  for (auto const& each : tables_of(suite, lines)) {
    summary["tables"].push_back({{"title", each.title}, {"rows", each.rows}});
    page += fmt::format("\n{}\n\n{}", each.title, table(each.rows));
    markdown += fmt::format("\n## {}\n\n{}", each.title, markdown_table(each.rows));
  }
  auto const& settings = suite.tasks.front().ablation.settings;
  auto const sentence =
      fmt::format("Interquartile mean of {} ({}) over {} × {}{}. Intervals hold for these tasks: the bootstrap draws seeds within each.",
                  settings.metric, settings.at, plural(suite.tasks.size(), "task"), plural(seeds.size(), "seed"),
                  seeds.size() < all_seeds ? fmt::format(" (of {}: those that every arm has finished in every task)", all_seeds) : "");
  summary["sentences"].push_back(sentence);
  CsvRows csv{{"task", "arm", "seed", "quantity", "value", "low", "high"}};
  for (auto const& [task, arm, seed, quantity, value, interval] : lines)
    csv.push_back({task, arm, seed, quantity, csv_number(value), interval ? csv_number(interval->low) : "",
                   interval ? csv_number(interval->high) : ""});
  std::filesystem::create_directories(suite.folder);
  write_atomically(suite.folder / "results.csv", csv_text(csv));
  write_atomically(suite.folder / "summary.md", fmt::format("{}\n{}\n", markdown, sentence));
  write_summary(suite.folder, summary, {"results.csv", "summary.md"});
  write_report(suite.folder, true);
  return fmt::format("{}\n{}\n", page, sentence);
}

}  // namespace heed
