// A table of other programs' runs as the result of an ablation: the same statistics, the same page.

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/ablation/results.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/judge/judge.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/program/system.hpp"
#include "experiments/report/report.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/json.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

using Json = nlohmann::ordered_json;

namespace {

Better better_of(JudgeOptions const& options) {
  if (options.lower || options.higher) return options.lower ? Better::lower : Better::higher;
  auto const* const info = find_metric(options.table.metric.value_or(""));
  if (info == nullptr || !info->better) throw ConfigError("judge", "say which values of the metric are better: --lower or --higher");
  return *info->better;
}

AblationResult result_of(RunsTable const& table, JudgeOptions const& options, Better better) {
  AblationResult result;
  result.name = fs::path(table.read.front().file).stem().string() + (table.task.empty() ? "" : " " + table.task);
  result.metric = table.metric;
  result.better = name(better);
  result.at = options.table.at;
  result.margin = options.margin.value_or(0);
  result.seeds = table.seeds;
  result.arms = table.arms;
  for (auto& arm : result.arms) {
    for (auto const& [seed, value] : arm.values)
      if (std::isinf(value)) arm.diverged.push_back(seed);
    arm.estimate = estimate(mapped(arm.values, &BySeed::value_type::second));
  }
  auto const names = names_of(result.arms);
  if (names.size() < 2)
    throw FileError(fmt::format("{}: has one arm alone, '{}': nothing to compare", table.read.front().file, names.front()));
  result.baseline = options.baseline.empty() ? names.front() : options.baseline;
  if (result.baseline_arm() == nullptr)
    throw ConfigError("--baseline", fmt::format("there is no arm '{}'{}", result.baseline, did_you_mean(result.baseline, names)));
  Question const question{.better = better, .margin = result.margin};
  compare_with_baseline(result, question, !options.fixed);
  for (auto const& arm : result.arms)
    if (arm.name != result.baseline)
      result.sentences.push_back(sentence(arm.name, result.baseline, result.unit, arm.difference.value_or(Comparison()), question));
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
  return fmt::format("judge-{}-{}", file_label(result.name), sha256(question).substr(0, 8));
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
  std::vector<Judgement> judged;
  for (auto const& arm : result.arms)
    if (arm.difference) judged.push_back(judgement_of(result, arm));
  Json json{{"arms", Json::array()}};
  for (auto const& each : judged) json["arms"].push_back(json_of(each));
  if (judged.size() == 1) json = Json(json["arms"].front());
  json["seconds"] = seconds_since(began);
  for (auto const& file : table.read) json["read"][file.file] = file.sha256;
  json["revision"] = revision;
  json["folder"] = folder.string();
  json["remarks"] = table.remarks;
  if (options.json)
    fmt::print("{}\n", json_text(json));
  else if (!options.quiet)
    fmt::print("{}{}  {}\n", page, judged.size() == 1 ? in_words(judged.front()) : "", (folder / "report.html").string());
  if (result.arms.size() > 2) return Exit::done;
  return judged.empty() ? Exit::unclear : exit_of(judged.front().comparison.verdict);
}

}  // namespace heed
