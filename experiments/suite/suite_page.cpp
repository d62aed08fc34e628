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
#include "experiments/report/material.hpp"
#include "experiments/report/parts.hpp"
#include "experiments/report/traces.hpp"
#include "experiments/suite/suite.hpp"

namespace heed {

namespace {

std::optional<Interval> percentiles(std::vector<double> replicates) {
  if (replicates.empty() || !std::ranges::all_of(replicates, [](double value) { return std::isfinite(value); })) return std::nullopt;
  std::ranges::sort(replicates);
  return Interval{quantile_of(replicates, 0.025), quantile_of(replicates, 0.975)};
}

/// results.csv: a line a quantity of an arm with one seed, in one task, or (no task) over all. Of `seeds` those stay that every arm has
/// finished in every task.
CsvRows results_of(Suite const& suite, std::vector<Index>& seeds) {
  Ablation const& first = suite.tasks.front().ablation;
  auto const materials = mapped(suite.tasks, [](SuiteTask const& task) { return read_material(task.ablation.folder()); });
  for (auto const& material : materials)
    for (auto const& arm : material.arms) std::erase_if(seeds, [&](Index seed) { return !arm.values.contains(seed); });
  if (seeds.empty()) throw Error(fmt::format("{}: there is no seed that every arm has finished in every task", suite.folder.string()));
  CsvRows csv{{"task", "arm", "seed", "quantity", "value", "low", "high", "metric"}};
  std::string task;
  auto const add = [&](std::string const& arm, std::string const& seed, char const* quantity, double value,
                       std::optional<Interval> const& interval = {}) {
    csv.push_back({task, arm, seed, quantity, csv_number(value), "", "", first.settings.metric});
    if (interval) csv.back()[5] = csv_number(interval->low), csv.back()[6] = csv_number(interval->high);
  };
  std::map<std::string, std::vector<double>> scores;
  std::map<std::string, double> parameters, logarithms;  // means over tasks
  for (std::size_t i = 0; i < materials.size(); ++i)
    for (auto const& arm : materials[i].arms) {
      task = suite.tasks[i].name;
      auto const size = arm.parameters > 0 ? static_cast<double>(arm.parameters) : std::nan("");  // 0: no trial has finished
      auto const speed = arm.tokens_per_second.value_or(std::nan(""));
      if (arm.estimate) add(arm.name, "", "mean", arm.estimate->mean, arm.estimate->interval);
      if (arm.difference) add(arm.name, "", "difference", arm.difference->mean, arm.difference->interval);
      add(arm.name, "", "parameters", size);
      add(arm.name, "", "tokens_per_second", speed);
      for (auto const& [seed, value] : arm.values) add(arm.name, fmt::format("{}", seed), "score", value);
      for (auto const seed : seeds) scores[arm.name].push_back(arm.values.at(seed));
      parameters[arm.name] += size / static_cast<double>(materials.size());
      logarithms[arm.name] += std::log(speed) / static_cast<double>(materials.size());
    }
  auto const estimates =
      suite_estimates(mapped(first.arms, [&](Arm const& arm) { return scores[arm.name]; }), seeds.size(), first.baseline);
  task.clear();
  for (std::size_t arm = 0; arm < estimates.size(); ++arm) {
    auto const& name = first.arms[arm].name;
    add(name, "", "interquartile_mean", estimates[arm].mean, estimates[arm].interval);
    if (arm != first.baseline) add(name, "", "difference", estimates[arm].difference, estimates[arm].difference_interval);
    add(name, "", "parameters", parameters[name]);
    add(name, "", "tokens_per_second", std::exp(logarithms[name]));
  }
  return csv;
}

/// What results.csv says over the seeds, for tables and figures.
struct SuiteNumbers {
  std::vector<std::string> tasks, arms, others;            ///< others: than the baseline
  std::string baseline, metric = "the metric";             ///< which older results do not name
  std::map<std::array<std::string, 3>, Estimate> numbers;  ///< by task, arm and quantity

  SuiteNumbers(CsvRows const& csv, fs::path const& path) {
    bool const named = std::ranges::count(csv.front(), "metric") > 0;
    for (auto const& line : csv_lines(csv, path)) {
      if (named) metric = line["metric"];
      if (!line["seed"].empty()) continue;
      auto const &task = line["task"], &arm = line["arm"];
      auto& number = numbers[{task, arm, line["quantity"]}];
      number.mean = line.number("value");
      if (!line["low"].empty()) number.interval = {line.number("low"), line.number("high")};
      if (!task.empty() && std::ranges::find(tasks, task) == tasks.end()) tasks.push_back(task);
      if (task.empty() && line["quantity"] == "interquartile_mean") arms.push_back(arm);
      if (task.empty() && line["quantity"] == "difference") others.push_back(arm);
    }
    baseline = *std::ranges::find_if(arms, [&](auto const& arm) { return std::ranges::count(others, arm) == 0; });
  }

  /// A number with its interval at x; NaN if there is none.
  CurvePoint point(double x, std::string const& task, std::string const& arm, std::string const& quantity) const {
    auto const found = numbers.find({task, arm, quantity});
    return found == numbers.end() ? CurvePoint::bare(x, std::nan("")) : point_of(x, found->second);
  }

  std::string in_words(std::string const& task, std::string const& arm, std::string const& quantity) const {
    auto const found = numbers.find({task, arm, quantity});
    if (found == numbers.end()) return "";
    auto const& number = found->second;
    if (std::isnan(number.mean)) return "–";
    if (quantity == "parameters" || quantity == "tokens_per_second") return fmt::format("{:.0f}", number.mean);
    NumberFormat const format(1);
    return quantity == "difference" ? shown_difference(format, number.mean, number.interval) : shown_mean(format, number);
  }

  /// A row an arm, a column for each task and quantity, of which the one that tells them apart is above.
  StudyTable table(std::string const& title, std::vector<std::string> const& of_tasks, std::vector<std::string> const& quantities) const {
    StudyTable made{.title = title, .rows = {{"arm"}}};
    for (auto const& arm : arms) made.rows.push_back({arm});
    for (auto const& task : of_tasks)
      for (auto const& quantity : quantities) {
        auto head = quantity;
        std::ranges::replace(head, '_', ' ');
        made.rows.front().push_back(task.empty() ? head : task);
        for (std::size_t i = 0; i < arms.size(); ++i) made.rows[i + 1].push_back(in_words(task, arms[i], quantity));
      }
    return made;
  }

  std::vector<StudyTable> tables() const {
    return {
        table("Over all tasks, differences to " + baseline, {""}, {"interquartile_mean", "difference", "parameters", "tokens_per_second"}),
        table("Means by task", tasks, {"mean"}), table("Paired differences to " + baseline + " by task", tasks, {"difference"})};
  }

  /// Arms as rows, with intervals across.
  Panel rows(std::string const& title, std::vector<std::string> const& shown, std::string const& task, std::string const& quantity,
             std::string const& axis) const {
    Panel panel{.title = title, .y = axis_of_rows(shown)};
    Range range;
    if (quantity == "difference") range.include(0), panel.guides = {{.at = 0, .upright = true, .colour = limit_colour}};
    for (std::size_t i = 0; i < shown.size(); ++i) {
      auto const at = point(static_cast<double>(i), task, shown[i], quantity);
      if (!std::isfinite(at.y)) continue;
      range.include(at);
      panel.layers.push_back(
          {As::intervals_across, {{at.y, at.x, at.low, at.high}}, {.colour = line_colour(1), .width = 1.6, .size = 0.6}});
    }
    range.widen(0.06);
    panel.x = axis_over(range, axis);
    return panel;
  }

  /// Interquartile means against what an arm costs.
  Panel costs(std::string const& quantity, std::string const& axis) const {
    Panel panel;
    Range range, scores;
    for (std::size_t i = 0; i < arms.size(); ++i) {
      panel.layers.push_back({As::intervals, {}, solid_look(i), arms[i]});
      panel.layers.back().look.open = i >= line_colours;  // whose colours come again
      auto const at = point(point(0, "", arms[i], quantity).y, "", arms[i], "interquartile_mean");
      if (!std::isfinite(at.y) || !std::isfinite(at.x)) continue;
      panel.layers.back().points = {at};
      range.include(at.x);
      scores.include(at);
    }
    range.widen(0.1);
    scores.widen(0.07);
    panel.x = axis_over(range, axis, 4);
    panel.y = axis_over(scores, "interquartile mean");
    return panel;
  }
};

std::vector<StudyPart> present(StudyRecord const& record) {
  SuiteNumbers const suite(record.csv, record.folder / "results.csv");
  double const high = 0.1 + 0.21 * static_cast<double>(suite.arms.size());
  Figure all{.name = "interquartile_mean",
             .title = "Interquartile mean over all tasks",
             .caption = fmt::format(
                 "Mean of the middle half of all scores ({}), and its difference to the baseline; bars: 95 % intervals by a bootstrap of "
                 "seeds within each task.",
                 suite.metric),
             .panels = {suite.rows("", suite.arms, "", "interquartile_mean", "interquartile mean"),
                        suite.rows("", suite.arms, "", "difference", "difference to " + suite.baseline)},
             .across = 2,
             .shared_y = true,
             .frame_height = high};
  Figure costs{.name = "costs",
               .title = "Score against size and speed",
               .caption =
                   "Interquartile means with 95 % intervals. Parameters: mean over tasks; tokens per second: geometric mean over "
                   "tasks, in training beside other trials.",
               .panels = {suite.costs("parameters", "parameters"), suite.costs("tokens_per_second", "tokens per second")},
               .across = 2,
               .shared_y = true};
  for (auto const& layer : costs.panels.front().layers) costs.legend.push_back({layer.name, layer.look, As::dots});
  Figure by_task{
      .name = "tasks",
      .title = "Paired differences by task",
      .caption = fmt::format("Differences of {} to {} within a seed: means with 95 % intervals, not corrected for the number of tasks.",
                             suite.metric, suite.baseline),
      .across = 3,
      .shared_y = true,
      .frame_height = high};
  for (auto const& task : suite.tasks) by_task.panels.push_back(suite.rows(task, suite.others, task, "difference", "difference"));
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
  Stream const stream(0, "suite");
  std::size_t const size = arms.front().size();
  std::vector<std::size_t> chosen(size);
  std::vector<std::vector<double>> means(arms.size()), differences(arms.size());  // of each arm by resample
  for (std::size_t r = 0; seeds > 1 && r < resamples; ++r) {
    for (std::size_t i = 0; i < size; ++i) chosen[i] = i / seeds * seeds + stream.below(r * size + i, seeds);
    for (std::size_t arm = 0; arm < arms.size(); ++arm)
      means[arm].push_back(interquartile_mean(mapped(chosen, [&](std::size_t i) { return arms[arm][i]; })));
    for (std::size_t arm = 0; arm < arms.size(); ++arm) differences[arm].push_back(means[arm][r] - means[baseline][r]);
  }
  std::vector<SuiteEstimate> estimates;
  for (std::size_t arm = 0; arm < arms.size(); ++arm) {
    double const mean = interquartile_mean(arms[arm]);
    estimates.push_back({mean, mean - interquartile_mean(arms[baseline]), percentiles(means[arm]), percentiles(differences[arm])});
  }
  estimates[baseline].difference_interval.reset();
  return estimates;
}

std::string write_suite(Suite const& suite) {
  auto const& [settings, all_seeds] = std::tie(suite.tasks.front().ablation.settings, suite.tasks.front().ablation.seeds);
  auto seeds = all_seeds;
  auto const csv = results_of(suite, seeds);
  auto const sentence = fmt::format(
      "Interquartile mean of {} ({}) over {} × {}{}. Intervals hold for these tasks: the bootstrap draws seeds within each.",
      settings.metric, settings.at, plural(suite.tasks.size(), "task"), plural(seeds.size(), "seed"),
      seeds.size() < all_seeds.size() ? fmt::format(" (of {}: those that every arm has finished in every task)", all_seeds.size()) : "");
  std::vector<std::string> sentences{sentence};
  if (seeds.size() > 1 && seeds.size() < 5)
    sentences.push_back(fmt::format(
        "Warning: {} seeds: a bootstrap of so few has few distinct values, and its intervals are too narrow; take five or more.",
        seeds.size()));
  return write_study({{csv, SuiteNumbers(csv, "results.csv").tables(), sentences}, suite.folder, "suite", suite.name}, {});
}

}  // namespace heed
