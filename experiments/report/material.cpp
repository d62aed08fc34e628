#include "experiments/report/material.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/row.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/number.hpp"

namespace heed {

using Json = nlohmann::ordered_json;

namespace {

bool is_missing(fs::path const& path) {
  std::error_code unreadable;
  return fs::status(path, unreadable).type() == fs::file_type::not_found;
}

/// "continued from runs/a at step 100, which was continued from runs/b at step 50", from a summary's lineage.
std::string lineage_in_words(Json const& lineage) {
  auto const before = lineage.find("continued");
  return fmt::format("continued from {} at step {}{}", lineage.value("run", ""), lineage.value("step", Index{0}),
                     before == lineage.end() ? "" : ", which was " + lineage_in_words(*before));
}

void read_run(Json const& json, Material& material) {
  material.single = true;
  material.name = json.at("name").get<std::string>();
  material.metric = json.contains("validation.loss") ? "validation.loss" : "loss";
  if (auto const* const info = find_metric(material.metric)) material.unit = info->unit;
  material.seeds = {0};
  material.steps = whole_at(json, "steps");
  material.configuration = json.value("configuration", "");
  ArmResult run;
  run.name = material.name;
  run.folders = {"."};
  read_costs(json, run);
  if (auto const value = real_at(json, material.metric.c_str())) run.estimate = Estimate{.count = 1, .mean = *value, .interval = {}};
  auto const losses = json.value("yardsticks", Json::object());
  for (auto const& [name, loss] : losses.items()) {
    if (loss.is_number()) material.reference_losses.emplace_back(name, loss.get<double>());
  }
  if (auto const baselines = json.find("baselines"); baselines != json.end() && baselines->is_array())
    for (auto const& each : *baselines)
      if (each.is_object() && each.value("value", Json()).is_number())
        material.baselines.push_back({each.value("name", ""), each.value("metric", ""), each["value"].get<double>()});
  auto const data = json.value("data", Json::object());
  if (data.is_object() && data.contains("remarks")) data["remarks"].get_to(material.sentences);
  for (char const* const key : {"cut", "grown"})
    if (auto const text = json.value(key, ""); !text.empty()) material.warnings.push_back(text);
  if (auto const init = json.find("init"); init != json.end() && init->is_object())
    if (auto const remark = init->value("remark", ""); !remark.empty())
      material.warnings.push_back(fmt::format("init.from: {}: {}", init->value("file", ""), remark));
  if (auto const from = json.find("continued"); from != json.end() && from->is_object())
    material.sentences.push_back(fmt::format("The run was {}, at a learning rate of {:.3g}; its curves begin with that run's.",
                                             lineage_in_words(*from), real_at(*from, "lr").value_or(std::nan(""))));
  if (json.contains("trained"))
    material.sentences.push_back(
        fmt::format("Low-rank adapters: {} of {} parameters were trained.", whole_at(json, "trained"), whole_at(json, "parameters")));
  if (auto const best = json.find("best"); best != json.end() && best->is_object())
    material.sentences.push_back(fmt::format(
        "The weights are those of step {}, the best of {} evaluations by {}: {:.5g}. Selected on these data, this value is optimistic.",
        whole_at(*best, "step"), whole_at(*best, "evaluations"), best->value("metric", ""),
        real_at(*best, "value").value_or(std::nan(""))));
  if (json.contains("stopped_at")) material.sentences.push_back(fmt::format("Stopped early: {}.", json.value("stopped_because", "")));
  material.arms.push_back(std::move(run));
}

/// results.csv into the arms' histories: the first column is the arm, the last four are seed, step, metric, value.
void read_curves(Material& material) {
  fs::path const path = material.folder / "results.csv";
  if (is_missing(path)) {
    material.warnings.push_back("results.csv is missing: no curves");
    return;
  }
  std::map<std::string, ArmResult*> arms;
  for (auto& arm : material.arms) arms[arm.name] = &arm;
  check_written(material.folder, "results.csv");
  auto const lines = parse_csv(read_file(path));
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto const& line = lines[i];
    if (line.size() < 5) throw FileError(fmt::format("{}: line {} has {} fields, but needs 5 at least", path.string(), i + 1, line.size()));
    auto const found = arms.find(line.front());
    auto const seed = parsed_number<Index>(line[line.size() - 4]), step = parsed_number<Index>(line[line.size() - 3]);
    auto const value = parsed_number<double>(line.back());
    if (found == arms.end() || !seed || !step || !value)
      throw FileError(fmt::format("{}: line {} is no result of this ablation", path.string(), i + 1));
    auto& series = found->second->histories[*seed][line[line.size() - 2]];
    if (Index const last = series.empty() ? -1 : series.back().first; *step <= last)
      throw FileError(fmt::format("{}: line {}: step {} after step {}", path.string(), i + 1, *step, last));
    series.emplace_back(*step, *value);
  }
}

/// Collects the files that the first run of each arm has read.
void collect_files_read(Material& material) {
  for (auto const& arm : material.arms) {
    if (arm.folders.empty()) continue;
    for (auto const& item : files_read_in(material.folder / arm.folders.front())) {
      HashedFile const& file = item.second;
      auto const same = [&](HashedFile const& other) { return other.file == file.file && other.sha256 == file.sha256; };
      if (std::ranges::none_of(material.read, same)) material.read.push_back(file);
    }
  }
}

}  // namespace

Material read_material(fs::path const& folder) {
  fs::path const path = folder / "summary.json";
  if (is_missing(path))
    throw FileError(fmt::format("{}: cannot be read: no such file ({})", path.string(),
                                is_missing(folder / "config.yaml")
                                    ? "is this the folder of a finished run, study or ablation?"
                                    : "it is written when a run or a study has finished; the command that began it resumes it"));
  auto const json = read_json(path);
  Material material;
  material.folder = folder;
  try {
    if (json.contains("ablation"))
      static_cast<AblationResult&>(material) = ablation_result_of(json);
    else
      read_run(json, material);
    material.environment = texts_at(json, "environment");
  } catch (std::exception const& error) {
    throw FileError(fmt::format("{}: is not a summary of a run or an ablation: {}", path.string(), error.what()));
  }
  collect_files_read(material);
  if (material.single)
    material.arms.front().histories[0] = read_history(folder);
  else
    read_curves(material);
  return material;
}

Yaml configuration_of(Material const& material, ArmResult const& arm) {
  if (material.single) return parse_yaml(material.configuration, "config.yaml");
  if (arm.folders.empty()) return {};
  fs::path const summary = material.folder / arm.folders.front() / "summary.json";
  if (is_missing(summary)) return {};  // a trial that was put away since
  return parse_yaml(read_json(summary).value("configuration", ""), summary.string() + ": its configuration");
}

}  // namespace heed
