#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "experiments/ablation/results.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/data/examples/files.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/judge/judge.hpp"
#include "experiments/metric/evidence.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/program/system.hpp"
#include "experiments/report/report.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/json.hpp"
#include "nn/files/number.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

using Json = nlohmann::ordered_json;

namespace {

using Column = std::optional<std::size_t>;
using Texts = std::vector<std::string>;

struct RunsTable : Table {
  Column arm{}, seed{}, step{};
  /// Where the numbers are: a column whose rows say their arm (""), or columns by name: of arms if there is one of seeds, else of runs.
  std::vector<std::pair<std::string, std::size_t>> values{};
};

RunsTable read_table(std::filesystem::path const& path, Material& result) {
  auto const bytes = read_text(path);
  result.read.push_back({path.string(), sha256(bytes)});
  FileExamples keys;
  keys.header = true;
  for (ExampleFormat const& format : Registry<ExampleFormat>::all())
    if (format.table && path.has_extension() && path.extension() == format.ending) return {format.table(bytes, path.string(), keys)};
  throw FileError(path.string() + ": its ending must say how it is written: .csv, .tsv or .jsonl");
}

/// What is given, else the only one there is.
std::string chosen(std::string const& option, std::string const& sort, std::optional<std::string> const& given, Texts all) {
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (given) expect_known(option, *given, all, sort);
  if (!given && all.size() != 1) throw ConfigError(option, fmt::format("say which {}: {}", sort, fmt::join(all, ", ")));
  return given.value_or(all.front());
}

/// The column that an option names, else the first of the usual ones.
Column find_column(Table const& table, char const* option, std::optional<std::string> const& given, Texts usual) {
  if (given) expect_known(option, *given, table.columns, "column"), usual = {*given};
  auto const found = std::ranges::find_first_of(usual, table.columns);
  return found == usual.end() ? std::nullopt : Column(std::ranges::find(table.columns, *found) - table.columns.begin());
}

/// Keeps the rows that have in a column what is given, else the only thing there. Returns it.
std::string keep_rows(Table& table, std::size_t column, char const* option, std::optional<std::string> const& given) {
  auto const all = mapped(table.rows, [&](auto const& row) { return row.fields[column]; });
  auto const name = chosen(option, table.columns[column], given, all);
  std::erase_if(table.rows, [&](auto const& row) { return row.fields[column] != name; });
  return name;
}

std::vector<std::size_t> free_columns(RunsTable const& table) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    auto const& name = table.columns[i];  // "" is pandas' index
    if (!name.empty() && name != "task" && i != table.arm && i != table.seed && i != table.step) all.push_back(i);
  }
  return all;
}

/// The column of the metric, or of `value` in the rows that name it: then it has heed's unit, if it is heed's.
std::size_t value_column(RunsTable& table, JudgeOptions const& options, Material& result) {
  auto const names = find_column(table, "", {}, {"metric"}), numbers = find_column(table, "", {}, {"value"});
  if (names && numbers) {
    result.metric = keep_rows(table, *names, "--metric", options.metric);
    if (auto const* const info = find_metric(result.metric)) result.unit = info->unit;
    return *numbers;
  }
  Texts numeric;
  for (auto const column : free_columns(table)) {
    auto const is_number = [&](auto const& row) { return parsed_number<double>(row.fields[column]).has_value(); };
    if (std::ranges::any_of(table.rows, is_number)) numeric.push_back(table.columns[column]);
  }
  result.metric = chosen("--metric", "column", options.metric, options.metric || numeric.empty() ? table.columns : numeric);
  return *find_column(table, "--metric", result.metric, {});
}

/// Adds the columns that have names: of arms if there is a column of seeds, else of runs of a chart, "RUN - METRIC". None if others remain.
void add_named_columns(RunsTable& table, JudgeOptions const& options, std::string& metric) {
  Texts metrics;
  for (auto const column : free_columns(table)) {
    auto const& name = table.columns[column];
    if (!table.seed && (name.ends_with("__MIN") || name.ends_with("__MAX") || name.ends_with(" - _step"))) continue;
    auto const dash = table.seed ? name.size() : name.rfind(" - ");
    if (dash == name.npos || name == options.metric) return table.values.clear();
    metrics.push_back(table.seed ? options.metric.value_or("value") : name.substr(dash + 3));
    table.values.emplace_back(name.substr(0, dash), column);
  }
  if (table.values.empty()) return;
  metric = chosen("--metric", "metric", options.metric, metrics);
  if (!table.seed) std::erase_if(table.values, [&](auto const& each) { return table.columns[each.second] != each.first + " - " + metric; });
}

/// The name of the run of TensorBoard's run-NAME-tag-METRIC.csv.
std::string run_of_download(Table const& table, JudgeOptions const& options, std::string& metric) {
  auto const stem = std::filesystem::path(table.path).stem().string();
  auto const tag = stem.find("-tag-"), begin = stem.starts_with("run-") ? std::size_t{4} : 0;
  auto const own = tag == stem.npos ? options.metric.value_or("Value") : stem.substr(tag + 5);
  metric = chosen(table.path, "metric", metric.empty() ? options.metric : metric, {own});
  return stem.substr(begin, tag - begin);
}

/// Finds the columns, and leaves out rows of other tasks and metrics.
void find_columns(RunsTable& table, JudgeOptions const& options, Material& result) {
  if (table.columns.size() < 2) refuse_line(table.path, 1, "has one column alone; fields are separated by commas, in .tsv by tabs");
  if (options.task) expect_known("--task", "task", table.columns, "column");
  auto const task = find_column(table, "", {}, {"task"});
  result.name = fs::path(result.read.front().file).stem().string();
  if (task) result.name += " " + keep_rows(table, *task, "--task", options.task);
  table.seed = find_column(table, "--seed", options.seed, {"seed"});
  table.step = find_column(table, "--step", options.step, {"step", "_step", "Step"});
  table.arm = find_column(table, "--arm", options.arm, table.seed ? Texts{"arm"} : Texts{"arm", "run"});
  bool const download = table.columns == Texts{"Wall time", "Step", "Value"};
  if (!download && options.what.size() > 1) throw ConfigError(table.path, "is not TensorBoard's; make several files one table");
  if (table.arm)
    table.values = {{"", value_column(table, options, result)}};
  else if (download)
    table.values = {{run_of_download(table, options, result.metric), 2}};
  else
    add_named_columns(table, options, result.metric);
  if (table.values.empty())
    throw ConfigError("--arm", fmt::format("say which column, if not --step or --seed: {}", fmt::join(table.columns, ", ")));
  if (!table.step && options.at != "last") throw ConfigError("--at", "there are no steps; name their column with --step");
  auto const from = [&](Column column) { return column ? "column " + table.columns[*column] : "a name"; };
  result.sentences = {fmt::format("{}: arms are read from {}, seeds from {}, {}", result.metric, from(table.arm), from(table.seed),
                                  table.step ? options.at + " of the steps in " + from(table.step) : "without steps")};
}

Index whole_number(Table const& table, Table::TableRow const& row, std::size_t column) {
  if (auto const number = parsed_number<Index>(row.fields[column]); number && *number >= 0) return *number;
  table.refuse(row, fmt::format("{}: {} is no whole number from 0 on", table.columns[column], shown(row.fields[column])));
}

/// What the name is of: an arm, whose seed is in a column, or a run.
std::pair<std::string, Index> arm_and_seed(RunsTable const& table, Table::TableRow const& row, std::string const& name) {
  bool const prints = std::ranges::none_of(name, [](unsigned char c) { return c < ' '; });
  if (!prints || name.find_first_not_of(' ') == name.npos) table.refuse(row, fmt::format("{} is no name of an arm", shown(name)));
  if (table.seed) return {name, whole_number(table, row, *table.seed)};
  auto const digits = name.find_last_not_of("0123456789") + 1;
  auto const arm = name.substr(0, digits);
  auto const seed = parsed_number<Index>(name.substr(digits));
  for (std::string const mark : {"-seed", "_seed", "-s", "_s", "-", "_"})
    if (seed && arm.size() > mark.size() && arm.ends_with(mark)) return {arm.substr(0, arm.size() - mark.size()), *seed};
  table.refuse(row, fmt::format("the run {} does not end in its seed, as in gpt-seed3; or say --arm and --seed", shown(name)));
}

/// A cell as the arm's value at a step.
void add_value(RunsTable const& table, Table::TableRow const& row, std::string const& label, std::string const& text, Material& result) {
  auto const [name, seed] = arm_and_seed(table, row, table.arm ? row.fields[*table.arm] : label);
  auto arm = std::ranges::find(result.arms, name, &ArmResult::name);
  if (arm == result.arms.end()) arm = result.arms.insert(arm, ArmResult()), arm->name = name;
  if (std::ranges::find(result.seeds, seed) == result.seeds.end()) result.seeds.push_back(seed);
  auto& curve = arm->histories[seed][result.metric];
  Index const step = table.step ? whole_number(table, row, *table.step) : 0;
  if (!curve.empty() && step <= curve.back().first)
    table.refuse(row, fmt::format("{}, seed {}, {}", shown(name), seed,
                                  table.step ? fmt::format("has step {} after step {}", step, curve.back().first)
                                             : "is there twice; if these are steps, name their column with --step"));
  auto const value = parsed_number<double>(text);
  if (!value)
    table.refuse(row, fmt::format("{} of {}: {} is no number{}", result.metric, shown(name), shown(text),
                                  table.arm ? "; of a run that diverged write NaN" : "; if a column has the names of arms, say --arm"));
  double const worst = result.better == "lower" ? INFINITY : -INFINITY;
  curve.emplace_back(step, std::isfinite(*value) ? *value : worst);
}

void add_runs(RunsTable const& table, Material& result) {
  for (auto const& [label, column] : table.values) {
    auto const& texts = mapped(table.rows, [column = column](auto const& row) { return row.fields[column]; });
    if (std::ranges::all_of(texts, &std::string::empty)) result.sentences.push_back(label + " has no value");
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (table.values.size() == 1 || !texts[i].empty()) add_value(table, table.rows[i], label, texts[i], result);
  }
}

double value_at(std::vector<std::pair<Index, double>> const& curve, Material const& result, std::string const& run) {
  if (result.at == "last") return curve.back().second;
  auto const [smallest, largest] = std::ranges::minmax_element(curve, {}, [](auto const& row) { return row.second; });
  if (result.at == "best") return result.better == "lower" ? smallest->second : largest->second;
  auto const step = parsed_number<Index>(result.at);
  if (!step) throw ConfigError("--at", fmt::format("wants last, best or a step, found {}", shown(result.at)));
  for (auto const& [each, value] : curve)
    if (each == *step) return value;
  throw ConfigError("--at", fmt::format("{} has no step {}; its last is {}", run, *step, curve.back().first));
}

/// The arms' values; says which runs have no partner, and which ended before others.
void take_values(Material& result) {
  Index last = 0;
  for (auto const& arm : result.arms)
    for (auto const& [seed, curves] : arm.histories) last = std::max(last, curves.at(result.metric).back().first);
  Texts early;
  for (auto& arm : result.arms) {
    for (auto const& [seed, curves] : arm.histories) {
      double const value = value_at(curves.at(result.metric), result, fmt::format("{}, seed {},", arm.name, seed));
      arm.values[seed] = value;
      if (std::isinf(value)) arm.diverged.push_back(seed);
      auto const end = curves.at(result.metric).back().first;
      if (end < last && (result.at == "last" || result.at == "best"))
        early.push_back(fmt::format("{}, seed {} (step {})", arm.name, seed, end));
    }
    arm.estimate = estimate(mapped(arm.values, &BySeed::value_type::second));
    auto missing = result.seeds;
    std::erase_if(missing, [&](Index seed) { return arm.values.contains(seed); });
    if (!missing.empty())
      result.sentences.push_back(fmt::format("{}: seeds missing, and left out of its comparisons: {}", arm.name, fmt::join(missing, ", ")));
  }
  if (!early.empty())
    result.sentences.push_back(
        fmt::format("others end at step {}, and these before, so that they may not compare: {}", last, fmt::join(early, "; ")));
}

/// "lower" or "higher": what is asked for, else as heed's metric of this name has it.
std::string better_of(std::string const& metric, JudgeOptions const& options) {
  if (options.lower || options.higher) return options.lower ? "lower" : "higher";
  auto const* const info = find_metric(metric);
  if (info == nullptr || !info->better)
    throw ConfigError("judge", fmt::format("say which values of {} are better: --lower or --higher", shown(metric)));
  return std::string(name(*info->better));
}

}  // namespace

Material read_runs_table(JudgeOptions const& options) {
  Material result;
  result.at = options.at;
  for (auto const& path : options.what) {
    auto table = read_table(path, result);
    find_columns(table, options, result);
    result.better = better_of(result.metric, options);
    add_runs(table, result);
  }
  if (result.arms.empty()) throw FileError(result.read.front().file + ": there are no values");
  take_values(result);
  return result;
}

// ---------------------------------------------------------------- as the result of an ablation: the same statistics, the same page

namespace {

/// Adds the comparison, as of an ablation's arms.
void compare_arms(Material& result, JudgeOptions const& options) {
  auto const names = names_of(result.arms);
  auto const& file = result.read.front().file;
  if (names.size() < 2) throw FileError(fmt::format("{}: has one arm alone, '{}': nothing to compare", file, names.front()));
  result.margin = options.margin.value_or(0);
  result.baseline = options.baseline.empty() ? names.front() : options.baseline;
  expect_known("--baseline", result.baseline, names, "arm");
  compare_with_baseline(result, result.question(), !options.fixed);
  auto const remarks = std::exchange(result.sentences, {});
  auto const enough = seeds_for_verdict(!options.fixed, result.arms.size() - 1);
  Texts few;
  for (auto const& arm : result.arms) {
    if (arm.name == result.baseline) continue;
    auto const comparison = arm.difference.value_or(Comparison());
    result.sentences.push_back(sentence(arm.name, result.baseline, result.unit, comparison, result.question()));
    if (comparison.seeds < enough) few.push_back(fmt::format("{} ({})", arm.name, comparison.seeds));
  }
  if (!few.empty())
    result.sentences.push_back(fmt::format("fewer pairs than the {} that can tell a difference: {}", enough, fmt::join(few, ", ")));
  std::ranges::copy(remarks, std::back_inserter(result.sentences));
  for (auto const& [path, sha256] : result.read) result.sentences.push_back(fmt::format("read: {} (SHA-256 {})", path, sha256));
}

/// The curves, or one value a run, as an ablation's results.csv has them.
std::string curves_of(Material const& result) {
  std::string csv = csv_line({"arm", "seed", "step", "metric", "value"});
  for (auto const& arm : result.arms)
    for (auto const& [seed, history] : arm.histories)
      for (auto const& [metric, series] : history)
        for (auto const& [step, value] : series)
          csv += csv_line({arm.name, fmt::format("{}", seed), fmt::format("{}", step), metric, csv_number(value)});
  return csv;
}

}  // namespace

Exit judge_table(JudgeOptions const& options) {
  auto const began = std::chrono::steady_clock::now();
  auto result = read_runs_table(options);
  compare_arms(result, options);
  auto const question = fmt::format("{} {} {} {} {} {} {}", result.metric, result.better, result.at, result.baseline, result.margin,
                                    options.fixed, fmt::join(mapped(result.read, &HashedFile::sha256), " "));
  result.folder = options.folders.output / fmt::format("judge-{}-{}", file_label(result.name), sha256(question).substr(0, 8));
  result.environment = {{"revision", environment().value("revision", "")}};  // the runs' machine is not known
  FolderLock const held(result.folder);
  write_atomically(result.folder / "results.csv", curves_of(result));
  auto const page = write_summaries(result.folder, result, {{"revision", result.environment.front().second}});
  write_report(result.folder, true);
  auto answer = answer_of(result, seconds_since(began));
  if (options.json) {
    answer["remarks"] = result.sentences;
    fmt::print("{}\n", json_text(answer));
  } else if (!options.quiet) {
    fmt::print("{}{}  {}\n", page, in_words(answer, result), (result.folder / "report.html").string());
  }
  return exit_of(result);
}

}  // namespace heed
