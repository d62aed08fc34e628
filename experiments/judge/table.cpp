// A table of other programs' runs as the result of an ablation: the same statistics, the same page.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/ablation/results.hpp"
#include "experiments/config/nearest.hpp"
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
#include "nn/files/sha256.hpp"

namespace heed {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

Better better_of(JudgeOptions const& options) {
  if (options.lower || options.higher) return options.lower ? Better::lower : Better::higher;
  auto const* const info = find_metric(options.table.metric.value_or(""));
  if (info == nullptr || !info->better) throw ConfigError("judge", "say which values of the metric are better: --lower or --higher");
  return *info->better;
}

void compare_arms(AblationResult& result, Question const& question, bool fixed) {
  std::vector<BySeed> others;
  for (auto const& arm : result.arms)
    if (arm.name != result.baseline) others.push_back(arm.values);
  auto const tested = fixed ? compare(others, result.baseline_arm()->values, question) : std::vector<Comparison>(others.size());
  std::size_t number = 0;
  for (auto& arm : result.arms) {
    if (arm.name == result.baseline) continue;
    auto const comparison = fixed ? tested[number] : compare_by_evidence(result.differences(arm), question, others.size());
    ++number;
    if (comparison.seeds > 0) arm.difference = comparison;
    result.sentences.push_back(sentence(arm.name, result.baseline, result.unit, comparison, question));
  }
}

AblationResult result_of(RunsTable const& table, JudgeOptions const& options, Better better) {
  AblationResult result;
  result.name = fs::path(table.read.front().file).stem().string() + (table.task.empty() ? "" : " " + table.task);
  result.metric = table.metric;
  result.better = name(better);
  result.at = options.table.at;
  result.margin = options.margin.value_or(0);
  result.seeds = table.seeds;
  for (auto const& arm : table.arms) {
    auto& each = result.arms.emplace_back();
    each.name = arm.name;
    each.values = arm.values;
    std::vector<double> values;
    for (auto const& [seed, value] : arm.values) {
      values.push_back(value);
      if (std::isinf(value)) each.diverged.push_back(seed);
    }
    each.estimate = estimate(values);
  }
  std::vector<std::string> names;
  for (auto const& arm : result.arms) names.push_back(arm.name);
  if (names.size() < 2)
    throw FileError(fmt::format("{}: has one arm alone, '{}': nothing to compare", table.read.front().file, names.front()));
  result.baseline = options.baseline.empty() ? names.front() : options.baseline;
  if (result.baseline_arm() == nullptr)
    throw ConfigError("--baseline", fmt::format("there is no arm '{}'{}", result.baseline, did_you_mean(result.baseline, names)));
  compare_arms(result, {.better = better, .margin = result.margin}, options.fixed);
  std::ranges::copy(table.remarks, std::back_inserter(result.sentences));
  for (auto const& [file, sha256] : table.read) result.sentences.push_back(fmt::format("read: {} (SHA-256 {})", file, sha256));
  return result;
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

/// A folder for each table and question.
std::string folder_of(RunsTable const& table, JudgeOptions const& options, AblationResult const& result) {
  std::string question =
      fmt::format("{} {} {} {} {} {}", result.metric, result.better, result.at, result.baseline, table.task, result.margin);
  question += options.fixed ? " fixed" : "";
  for (auto const& file : table.read) question += " " + file.sha256;
  return fmt::format("judge-{}-{}", file_label(result.name), sha256(std::as_bytes(std::span(question))).substr(0, 8));
}

}  // namespace

Exit judge_table(JudgeOptions const& options) {
  auto const began = std::chrono::steady_clock::now();
  auto wanted = options.table;
  wanted.better = better_of(options);
  auto const table = read_runs_table(wanted);
  auto const result = result_of(table, options, wanted.better);
  fs::path const folder = options.folders.output / folder_of(table, options, result);
  FolderLock const held(folder);
  write_atomically(folder / "results.csv", curves_of(table));
  auto const revision = environment().value("revision", "");
  auto const page = write_summaries(folder, result, {{"revision", revision}});  // the runs' machine is not known
  write_report(folder, true);
  std::vector<ArmResult const*> compared;
  for (auto const& arm : result.arms)
    if (arm.difference) compared.push_back(&arm);
  Json json{{"arms", Json::array()}};
  for (auto const* const arm : compared) json["arms"].push_back(json_of(judgement_of(result, *arm)));
  if (compared.size() == 1) json = Json(json["arms"].front());
  json["seconds"] = seconds_since(began);
  for (auto const& file : table.read) json["read"][file.file] = file.sha256;
  json["revision"] = revision;
  json["folder"] = folder.string();
  json["remarks"] = table.remarks;
  if (options.json)
    fmt::print("{}\n", json_text(json));
  else if (!options.quiet)
    fmt::print("{}{}  {}\n", page, compared.size() == 1 ? in_words(judgement_of(result, *compared.front())) : "",
               (folder / "report.html").string());
  if (result.arms.size() > 2) return Exit::done;
  return compared.empty() ? Exit::unclear : exit_of(compared.front()->difference->verdict);
}

}  // namespace heed
