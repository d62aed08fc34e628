#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "experiments/ablation/results.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/data/examples/files.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/judge/judge.hpp"
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
using NamedColumns = std::vector<std::pair<std::string, std::size_t>>;
using Texts = std::vector<std::string>;

/// Where the numbers of a table are: in one column, whose rows say their arm, or in several, by name: without a column of seeds, of runs.
struct TableLayout {
  Column arm, seed, step;
  NamedColumns values;
};

Table read_table(std::filesystem::path const& path, RunsTable& result) {
  auto const bytes = read_text(path);
  result.read.push_back({path.string(), sha256(bytes)});
  FileExamples keys;
  keys.header = true;
  for (ExampleFormat const& format : Registry<ExampleFormat>::all())
    if (format.table && path.has_extension() && path.extension() == format.ending) return format.table(bytes, path.string(), keys);
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

std::vector<std::size_t> free_columns(Table const& table, TableLayout const& of) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    auto const& name = table.columns[i];  // "" is pandas' index
    if (!name.empty() && name != "task" && i != of.arm && i != of.seed && i != of.step) all.push_back(i);
  }
  return all;
}

/// The column of the metric, or of `value` in the rows that name it.
std::size_t value_column(Table& table, TableLayout const& of, RunsTableOptions const& options, RunsTable& result) {
  auto const names = find_column(table, "", {}, {"metric"}), numbers = find_column(table, "", {}, {"value"});
  if (names && numbers) {
    result.metric = keep_rows(table, *names, "--metric", options.metric);
    return *numbers;
  }
  Texts numeric;
  for (auto const column : free_columns(table, of))
    if (parsed_number<double>(table.rows.front().fields[column])) numeric.push_back(table.columns[column]);
  result.metric = chosen("--metric", "column", options.metric, options.metric || numeric.empty() ? table.columns : numeric);
  return *find_column(table, "--metric", result.metric, {});
}

/// The columns that have names: of arms if there is a column of seeds, else of runs of a chart, "RUN - METRIC". Empty if there are others.
NamedColumns named_columns(Table const& table, RunsTableOptions const& options, TableLayout const& of, RunsTable& result) {
  NamedColumns values;
  Texts metrics;
  for (auto const column : free_columns(table, of)) {
    auto const& name = table.columns[column];
    if (!of.seed && (name.ends_with("__MIN") || name.ends_with("__MAX") || name.ends_with(" - _step"))) continue;
    auto const dash = of.seed ? name.size() : name.rfind(" - ");
    if (dash == name.npos || name == options.metric) return {};
    metrics.push_back(of.seed ? options.metric.value_or("value") : name.substr(dash + 3));
    values.emplace_back(name.substr(0, dash), column);
  }
  if (values.empty()) return {};
  result.metric = chosen("--metric", "metric", options.metric, metrics);
  if (!of.seed) std::erase_if(values, [&](auto const& each) { return table.columns[each.second] != each.first + " - " + result.metric; });
  return values;
}

/// The name of the run of TensorBoard's run-NAME-tag-METRIC.csv.
std::string run_of_download(Table const& table, RunsTableOptions const& options, RunsTable& result) {
  auto const stem = std::filesystem::path(table.path).stem().string();
  auto const tag = stem.find("-tag-"), begin = stem.starts_with("run-") ? std::size_t{4} : 0;
  auto const metric = tag == stem.npos ? options.metric.value_or("Value") : stem.substr(tag + 5);
  result.metric = chosen(table.path, "metric", result.metric.empty() ? options.metric : result.metric, {metric});
  return stem.substr(begin, tag - begin);
}

/// Finds the columns, and leaves out rows of other tasks and metrics.
TableLayout layout_of(Table& table, RunsTableOptions const& options, RunsTable& result) {
  if (options.task) expect_known("--task", "task", table.columns, "column");
  if (auto const column = find_column(table, "", {}, {"task"})) result.task = keep_rows(table, *column, "--task", options.task);
  TableLayout of;
  of.seed = find_column(table, "--seed", options.seed, {"seed"});
  of.step = find_column(table, "--step", options.step, {"step", "_step", "Step"});
  of.arm = find_column(table, "--arm", options.arm, of.seed ? Texts{"arm"} : Texts{"arm", "run"});
  bool const download = table.columns == Texts{"Wall time", "Step", "Value"};
  if (!download && options.files.size() > 1) throw ConfigError(table.path, "is not TensorBoard's; make several files one table");
  if (of.arm)
    of.values = {{"", value_column(table, of, options, result)}};
  else if (download)
    of.values = {{run_of_download(table, options, result), 2}};
  else
    of.values = named_columns(table, options, of, result);
  if (of.values.empty()) throw ConfigError("--arm", fmt::format("say which column: {}", fmt::join(table.columns, ", ")));
  auto const from = [&](Column column) { return column ? "column " + table.columns[*column] : "a name"; };
  result.remarks = {fmt::format("{}: arms are read from {}, seeds from {}, {}", result.metric, from(of.arm), from(of.seed),
                                of.step ? options.at + " of the steps in " + from(of.step) : "without steps")};
  return of;
}

Index whole_number(Table const& table, Table::TableRow const& row, std::size_t column) {
  if (auto const number = parsed_number<Index>(row.fields[column])) return *number;
  table.refuse(row, fmt::format("{}: {} is no whole number", table.columns[column], shown(row.fields[column])));
}

/// What the name is of: an arm, whose seed is in a column, or a run.
std::pair<std::string, Index> arm_and_seed(Table const& table, Table::TableRow const& row, std::string const& name, Column seeds) {
  bool const prints = std::ranges::none_of(name, [](unsigned char c) { return c < ' '; });
  if (!prints || name.find_first_not_of(' ') == name.npos) table.refuse(row, fmt::format("{} is no name of an arm", shown(name)));
  if (seeds) return {name, whole_number(table, row, *seeds)};
  auto const digits = name.find_last_not_of("0123456789") + 1;
  auto const arm = name.substr(0, digits);
  auto const seed = parsed_number<Index>(name.substr(digits));
  for (std::string const mark : {"-seed", "_seed", "-s", "_s", "-", "_"})
    if (seed && arm.size() > mark.size() && arm.ends_with(mark)) return {arm.substr(0, arm.size() - mark.size()), *seed};
  table.refuse(row, fmt::format("the run {} does not end in its seed, as in gpt-seed3; or say --arm and --seed", shown(name)));
}

void add_runs(Table const& table, TableLayout const& of, Better better, RunsTable& result) {
  double const worst = better == Better::lower ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  for (auto const& [label, column] : of.values) {
    if (std::ranges::all_of(table.rows, [column = column](auto const& row) { return row.fields[column].empty(); }))
      result.remarks.push_back(label + " has no value");
    for (auto const& row : table.rows) {
      auto const& text = row.fields[column];
      if (of.values.size() > 1 && text.empty()) continue;
      auto const [name, seed] = arm_and_seed(table, row, of.arm ? row.fields[*of.arm] : label, of.seed);
      auto arm = std::ranges::find(result.arms, name, &ArmResult::name);
      if (arm == result.arms.end()) arm = result.arms.insert(arm, ArmResult()), arm->name = name;
      if (std::ranges::find(result.seeds, seed) == result.seeds.end()) result.seeds.push_back(seed);
      auto& curve = arm->histories[seed][result.metric];
      Index const step = of.step ? whole_number(table, row, *of.step) : 0;
      if (!curve.empty() && step <= curve.back().first)
        table.refuse(row, fmt::format("{}, seed {}, {}", shown(name), seed,
                                      of.step ? fmt::format("has step {} after step {}", step, curve.back().first)
                                              : "is there twice; if these are steps, name their column with --step"));
      auto const value = parsed_number<double>(text);
      if (!value)
        table.refuse(row, fmt::format("{} of {}: {} is no number{}", result.metric, shown(name), shown(text),
                                      of.arm ? "; of a run that diverged write NaN" : "; if a column has the names of arms, say --arm"));
      curve.emplace_back(step, std::isfinite(*value) ? *value : worst);
    }
  }
}

double value_at(std::vector<std::pair<Index, double>> const& curve, RunsTableOptions const& options, std::string const& run) {
  if (options.at == "last") return curve.back().second;
  auto const [smallest, largest] = std::ranges::minmax_element(curve, {}, [](auto const& row) { return row.second; });
  if (options.at == "best") return options.better == Better::lower ? smallest->second : largest->second;
  auto const step = parsed_number<Index>(options.at);
  if (!step) throw ConfigError("--at", fmt::format("wants last, best or a step, found {}", shown(options.at)));
  for (auto const& [each, value] : curve)
    if (each == *step) return value;
  throw ConfigError("--at", fmt::format("{} has no step {}; its last is {}", run, *step, curve.back().first));
}

/// Says which runs have no partner, and whether pairs are few.
void remark_on_pairs(RunsTable& table) {
  for (auto const& arm : table.arms) {
    std::vector<Index> missing;
    std::ranges::copy_if(table.seeds, std::back_inserter(missing), [&](Index seed) { return !arm.values.contains(seed); });
    if (!missing.empty())
      table.remarks.push_back(fmt::format("{}: seeds missing, and left out of its comparisons: {}", arm.name, fmt::join(missing, ", ")));
  }
  auto const common = std::ranges::count_if(
      table.seeds, [&](Index seed) { return std::ranges::all_of(table.arms, [&](auto const& arm) { return arm.values.contains(seed); }); });
  if (common < 6) table.remarks.push_back(fmt::format("seeds that all arms have: {}; a comparison can tell something from six on", common));
}

}  // namespace

RunsTable read_runs_table(RunsTableOptions const& options) {
  RunsTable result;
  for (auto const& path : options.files) {
    auto table = read_table(path, result);
    auto const layout = layout_of(table, options, result);
    if (!layout.step && options.at != "last") throw ConfigError("--at", "there are no steps; name their column with --step");
    add_runs(table, layout, options.better, result);
  }
  if (result.arms.empty()) throw FileError(result.read.front().file + ": there are no values");
  for (auto& arm : result.arms)
    for (auto const& [seed, curves] : arm.histories)
      arm.values[seed] = value_at(curves.at(result.metric), options, fmt::format("{}, seed {},", arm.name, seed));
  remark_on_pairs(result);
  return result;
}

// ---------------------------------------------------------------- as the result of an ablation: the same statistics, the same page

namespace {

Better better_of(JudgeOptions const& options) {
  if (options.lower || options.higher) return options.lower ? Better::lower : Better::higher;
  auto const* const info = find_metric(options.table.metric.value_or(""));
  if (info == nullptr || !info->better) throw ConfigError("judge", "say which values of the metric are better: --lower or --higher");
  return *info->better;
}

/// Adds the comparison, as of an ablation's arms.
void compare_arms(RunsTable& result, JudgeOptions const& options, Better better) {
  result.name = fs::path(result.read.front().file).stem().string() + (result.task.empty() ? "" : " " + result.task);
  result.better = name(better);
  result.at = options.table.at;
  result.margin = options.margin.value_or(0);
  for (auto& arm : result.arms) {
    for (auto const& [seed, value] : arm.values)
      if (std::isinf(value)) arm.diverged.push_back(seed);
    arm.estimate = estimate(mapped(arm.values, &BySeed::value_type::second));
  }
  auto const names = names_of(result.arms);
  if (names.size() < 2)
    throw FileError(fmt::format("{}: has one arm alone, '{}': nothing to compare", result.read.front().file, names.front()));
  result.baseline = options.baseline.empty() ? names.front() : options.baseline;
  if (result.baseline_arm() == nullptr)
    throw ConfigError("--baseline", fmt::format("there is no arm '{}'{}", result.baseline, did_you_mean(result.baseline, names)));
  Question const question{.better = better, .margin = result.margin};
  compare_with_baseline(result, question, !options.fixed);
  for (auto const& arm : result.arms)
    if (arm.name != result.baseline)
      result.sentences.push_back(sentence(arm.name, result.baseline, result.unit, arm.difference.value_or(Comparison()), question));
  std::ranges::copy(result.remarks, std::back_inserter(result.sentences));
  for (auto const& [file, sha256] : result.read) result.sentences.push_back(fmt::format("read: {} (SHA-256 {})", file, sha256));
}

/// The curves, or one value a run, as an ablation's results.csv has them.
std::string curves_of(RunsTable const& table) {
  std::string csv = csv_line({"arm", "seed", "step", "metric", "value"});
  for (auto const& arm : table.arms)
    for (auto const& [seed, history] : arm.histories)
      for (auto const& [metric, series] : history)
        for (auto const& [step, value] : series)
          csv += csv_line({arm.name, fmt::format("{}", seed), fmt::format("{}", step), metric, csv_number(value)});
  return csv;
}

std::string folder_of(RunsTable const& result, JudgeOptions const& options) {
  std::string question =
      fmt::format("{} {} {} {} {} {}", result.metric, result.better, result.at, result.baseline, result.task, result.margin);
  question += options.fixed ? " fixed" : "";
  for (auto const& file : result.read) question += " " + file.sha256;
  return fmt::format("judge-{}-{}", file_label(result.name), sha256(question).substr(0, 8));
}

}  // namespace

Exit judge_table(JudgeOptions const& options) {
  auto const began = std::chrono::steady_clock::now();
  auto wanted = options.table;
  wanted.better = better_of(options);
  auto result = read_runs_table(wanted);
  compare_arms(result, options, wanted.better);
  fs::path const folder = options.folders.output / folder_of(result, options);
  FolderLock const held(folder);
  write_atomically(folder / "results.csv", curves_of(result));
  auto const revision = environment().value("revision", "");
  auto const page = write_summaries(folder, result, {{"revision", revision}});  // the runs' machine is not known
  write_report(folder, true);
  std::vector<Judgement> judged;
  for (auto const& arm : result.arms)
    if (arm.difference) judged.push_back(judgement_of(result, arm));
  Json json{{"arms", Json::array()}};
  for (auto const& each : judged) json["arms"].push_back(json_of(each));
  if (judged.size() == 1) json = Json(json["arms"].front());
  json["seconds"] = seconds_since(began);
  for (auto const& file : result.read) json["read"][file.file] = file.sha256;
  json["revision"] = revision;
  json["folder"] = folder.string();
  json["remarks"] = result.remarks;
  if (options.json)
    fmt::print("{}\n", json_text(json));
  else if (!options.quiet)
    fmt::print("{}{}  {}\n", page, judged.size() == 1 ? in_words(judged.front()) : "", (folder / "report.html").string());
  if (result.arms.size() > 2) return Exit::done;
  return judged.empty() ? Exit::unclear : exit_of(judged.front().comparison.verdict);
}

}  // namespace heed
