#include "experiments/judge/long_table.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/nearest.hpp"
#include "experiments/config/yaml.hpp"
#include "nn/files/number.hpp"

namespace heed {
namespace {

using Texts = std::vector<std::string>;

void add_new(Texts& names, std::string const& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

/// What an option names, else the only one there is.
std::string chosen(char const* option, std::string const& sort, std::optional<std::string> const& given, Texts const& all) {
  if (given) expect_known(option, *given, all, sort);
  if (!given && all.size() != 1) throw ConfigError(option, fmt::format("say which {}: {}", sort, fmt::join(all, ", ")));
  return given.value_or(all.front());
}

Column column_called(Table const& table, std::string const& name) {
  auto const found = std::ranges::find(table.columns, name);
  return found == table.columns.end() ? std::nullopt : Column(found - table.columns.begin());
}

/// The column that an option names, or the only one with a usual name; nothing: there is none.
Column find_column(Table const& table, char const* option, std::optional<std::string> const& given, Texts const& usual) {
  Texts found = table.columns;
  if (!given) std::erase_if(found, [&](auto const& name) { return std::ranges::find(usual, name) == usual.end(); });
  return found.empty() ? std::nullopt : column_called(table, chosen(option, "column", given, found));
}

/// What is in the cells of a column that are not empty.
struct CellKinds {
  bool numbers = false, texts = false;
};

CellKinds cell_kinds(Table const& table, std::size_t column) {
  CellKinds found;
  for (auto const& row : table.rows)
    if (auto const& text = row.fields[column]; !text.empty()) (parsed_number<double>(text) ? found.numbers : found.texts) = true;
  return found;
}

bool is_numeric(Table const& table, std::size_t column) {
  auto const kinds = cell_kinds(table, column);
  return kinds.numbers && !kinds.texts;
}

/// Whether a column names something, which may be the arm.
bool names_something(Table const& table, std::size_t column) {
  auto const kinds = cell_kinds(table, column);
  return kinds.texts && !kinds.numbers && table.columns[column] != "task";
}

/// Keeps the rows that have the chosen value in a column. Returns it.
std::string keep_rows(Table& table, std::size_t column, char const* option, std::string const& sort,
                      std::optional<std::string> const& given) {
  Texts all;
  for (auto const& row : table.rows) add_new(all, row.fields[column]);
  auto const name = chosen(option, sort, given, all);
  std::erase_if(table.rows, [&](auto const& row) { return row.fields[column] != name; });
  return name;
}

void keep_task(Table& table, RunsTableOptions const& options, RunsTable& result) {
  auto const column = find_column(table, "--task", options.task ? std::optional<std::string>("task") : std::nullopt, {"task"});
  if (!column) return;
  auto const all = table.rows.size();
  result.task = keep_rows(table, *column, "--task", "task", options.task);
  if (auto const left_out = all - table.rows.size(); left_out > 0)
    result.remarks.push_back(fmt::format("{} of {} rows are of tasks other than {}: left out", left_out, all, result.task));
}

/// The column of the metric's numbers; where rows name metrics, keeps those of this one.
std::size_t keep_metric(LongTable& of, RunsTableOptions const& options, RunsTable& result) {
  Table& table = of.table;
  auto const names = column_called(table, "metric"), numbers = column_called(table, "value");
  if (names && numbers && !(options.metric && column_called(table, *options.metric))) {
    result.metric = keep_rows(table, *names, "--metric", "metric", options.metric);
    return *numbers;
  }
  Texts candidates = table.columns;
  if (!options.metric)
    std::erase_if(candidates, [&](auto const& name) {
      auto const column = column_called(table, name);
      return name.empty() || name == "task" || column == of.arm || column == of.seed || column == of.step || !is_numeric(table, *column);
    });
  result.metric = chosen("--metric", "column", options.metric, candidates.empty() ? table.columns : candidates);
  return *column_called(table, result.metric);
}

/// The number of a column and the name of the arm or run that it is of.
using Series = std::vector<std::pair<std::size_t, std::string>>;

/// A table's columns below one another: `keys`, name, number; empty cells are left out.
Table stacked(Table const& table, std::vector<std::size_t> const& keys, Series const& series, RunsTable& result) {
  Table all{table.path, {}, {}};
  for (auto const key : keys) all.columns.push_back(table.columns[key]);
  all.columns.insert(all.columns.end(), {"arm", result.metric});
  for (auto const& [column, name] : series) {
    auto const before = all.rows.size();
    for (auto const& row : table.rows) {
      if (row.fields[column].empty()) continue;
      auto& fields = all.rows.emplace_back(Table::TableRow{{}, row.line}).fields;
      for (auto const key : keys) fields.push_back(row.fields[key]);
      fields.insert(fields.end(), {name, row.fields[column]});
    }
    if (all.rows.size() == before) result.remarks.push_back(fmt::format("{} has no value", name));
  }
  return all;
}

/// A column an arm.
LongTable of_arms(Table const& table, RunsTableOptions const& options, std::size_t seed, Column step, RunsTable& result) {
  result.metric = options.metric.value_or("value");
  result.remarks.push_back("a column is an arm; where a cell is empty, there is no run");
  Series arms;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    auto const& name = table.columns[i];  // "" is pandas' index
    if (i != seed && i != step && !name.empty() && name != "task") arms.emplace_back(i, name);
  }
  if (step) return {stacked(table, {seed, *step}, arms, result), 2, 3, 0, 1};
  return {stacked(table, {seed}, arms, result), 1, 2, 0, {}};
}

/// A column a run, "RUN - METRIC"; nothing if others are among them.
std::optional<LongTable> of_chart(Table const& table, RunsTableOptions const& options, std::size_t step, RunsTable& result) {
  std::vector<Series::value_type> runs;
  Texts metrics;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    auto const& name = table.columns[i];
    auto const dash = name.rfind(" - ");
    if (i == step || name.empty()) continue;
    if (dash == name.npos) return std::nullopt;
    if (name.ends_with("__MIN") || name.ends_with("__MAX") || name.ends_with(" - _step")) continue;
    runs.emplace_back(i, name.substr(0, dash));
    add_new(metrics, name.substr(dash + 3));
  }
  if (runs.empty()) return std::nullopt;
  result.metric = chosen("--metric", "metric", options.metric, metrics);
  std::erase_if(runs, [&](auto const& run) { return !table.columns[run.first].ends_with(" - " + result.metric); });
  result.remarks.push_back("a column is a run of a Weights & Biases chart, whose rows may be a sample of its steps");
  return LongTable{stacked(table, {step}, runs, result), 1, 2, {}, 0};
}

bool is_download(Table const& table) { return table.columns == Texts{"Wall time", "Step", "Value"}; }

/// TensorBoard's run-NAME-tag-METRIC.csv.
LongTable of_download(Table table, RunsTableOptions const& options, RunsTable& result) {
  auto run = std::filesystem::path(table.path).stem().string();
  auto const tag = run.find("-tag-");
  auto const named = tag == run.npos ? options.metric.value_or("Value") : run.substr(tag + 5);
  auto const metric = chosen("--metric", "metric", options.metric, {named});
  if (!result.metric.empty() && metric != result.metric)
    throw ConfigError(table.path, fmt::format("is of {}, others are of {}", shown(metric), shown(result.metric)));
  result.metric = metric;
  run = run.substr(0, tag);
  if (run.starts_with("run-")) run.erase(0, 4);
  table.columns.push_back("run");
  for (auto& row : table.rows) row.fields.push_back(run);
  return {std::move(table), 3, 2, {}, 1};
}

LongTable long_table(Table table, RunsTableOptions const& options, RunsTable& result) {
  keep_task(table, options, result);
  bool const finds_runs = !options.arm && !options.seed;
  if (finds_runs && is_download(table)) return of_download(std::move(table), options, result);
  auto const step = find_column(table, "--step", options.step, {"step", "_step", "Step", "global_step"});
  if (finds_runs && step)
    if (auto chart = of_chart(table, options, *step, result)) return std::move(*chart);
  auto const seed = find_column(table, "--seed", options.seed, {"seed", "Seed"});
  auto arm = find_column(table, "--arm", options.arm, {"arm", "model", "method", "variant", "group", "run_group"});
  if (!options.arm && arm && is_numeric(table, *arm)) arm.reset();
  if (!arm && !seed) arm = find_column(table, "--arm", {}, {"run", "run_name", "name", "Name"});
  bool names = options.metric && column_called(table, *options.metric);  // or columns do
  for (std::size_t i = 0; i < table.columns.size(); ++i) names = names || names_something(table, i);
  if (!arm && seed && !names) return of_arms(table, options, *seed, step, result);
  if (!arm) throw ConfigError("--arm", fmt::format("say which column: {}", fmt::join(table.columns, ", ")));
  LongTable found{std::move(table), *arm, 0, seed, step};
  found.value = keep_metric(found, options, result);
  auto const& columns = found.table.columns;
  result.remarks.push_back(fmt::format("a row is a run{}: {} in {}{}, {}", step ? "'s step" : "", seed ? "arm" : "arm and seed",
                                       columns[*arm], seed ? ", seed in " + columns[*seed] : "", result.metric));
  return found;
}

}  // namespace

std::vector<LongTable> long_tables(std::vector<Table> tables, RunsTableOptions const& options, RunsTable& result) {
  std::vector<LongTable> all;
  bool const several = tables.size() > 1;
  for (auto& table : tables) {
    if (several && !is_download(table))
      throw ConfigError(table.path, "several files must be TensorBoard's, with columns Wall time,Step,Value; make others one table");
    all.push_back(long_table(std::move(table), options, result));
  }
  return all;
}

}  // namespace heed
