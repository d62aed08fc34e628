#include "experiments/report/material.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/row.hpp"
#include "experiments/run/csv.hpp"
#include "experiments/run/experiment.hpp"
#include "experiments/run/result_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

bool is_missing(fs::path const& path) {
  std::error_code unreadable;
  return fs::status(path, unreadable).type() == fs::file_type::not_found;
}

/// A number that may be infinite; nothing if it is absent, null or NaN.
std::optional<double> real(Json const& json, char const* key) {
  auto const found = json.find(key);
  double const value = found == json.end() ? std::nan("") : number_of(*found);
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

/// A whole number from 0 on. Throws Error for anything else: a real one may be beyond what fits.
std::int64_t whole(Json const& value, std::string const& what) {
  bool const fits = value.is_number_unsigned() && value.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max();
  if (!fits) throw Error(fmt::format("{} is no whole number from 0 on", what));
  return value.get<std::int64_t>();
}

/// The same of an object's member; 0 if it is absent.
std::int64_t whole_at(Json const& json, char const* key) { return json.contains(key) ? whole(json.at(key), key) : 0; }

std::optional<Interval> interval(Json const& json) {
  auto const found = json.find("interval");
  if (found == json.end() || !found->is_array() || found->size() != 2 || !(*found)[0].is_number() || !(*found)[1].is_number())
    return std::nullopt;
  return Interval{(*found)[0].get<double>(), (*found)[1].get<double>()};
}

void take_costs(Json const& json, ReportedArm& arm) {
  arm.parameters = whole_at(json, "parameters");
  arm.seconds = real(json, "time.seconds");
  arm.tokens_per_second = real(json, "time.tokens_per_second");
  arm.memory = real(json, "memory.peak");
}

ReportedArm arm_of(Json const& json) {
  ReportedArm arm;
  arm.name = json.at("name").get<std::string>();
  arm.keys = texts_of(json, "keys");
  arm.tuned = texts_of(json, "tuned");
  arm.folders = json.value("folders", arm.folders);
  auto const values = json.value("values", Json::object());
  for (auto const& [seed, value] : values.items()) {
    auto const key = parsed_number<std::int64_t>(seed);
    if (!key) throw Error(fmt::format("its values are of '{}', which is no seed", seed));
    if (double const each = number_of(value); !std::isnan(each)) arm.values[*key] = each;
  }
  for (auto const& seed : json.value("diverged", Json::array())) arm.diverged.push_back(whole(seed, "diverged"));
  arm.mean = real(json, "mean");
  arm.interval = interval(json);
  take_costs(json, arm);
  if (auto const found = json.find("difference"); found != json.end() && found->is_object()) {
    arm.difference = ReportedDifference{.mean = real(*found, "mean").value_or(std::nan("")),
                                        .interval = interval(*found),
                                        .p = found->value("p", 1.0),
                                        .effect = real(*found, "effect"),
                                        .verdict = found->value("verdict", ""),
                                        .p_t = real(*found, "p_paired_t"),
                                        .ranked = found->value("signed_ranks", false)};
  }
  return arm;
}

ReportedTuning tuning_of(Json const& json) {
  ReportedTuning tuning;
  tuning.seeds = json.at("seeds").size();
  for (auto const& point : json.at("points")) tuning.points.push_back({point.at("name").get<std::string>(), texts_of(point, "keys")});
  for (auto const& each : json.at("arms")) {
    auto& arm = tuning.arms.emplace_back();
    arm.name = each.at("name").get<std::string>();
    for (auto const& score : each.at("scores")) {
      double const value = number_of(score);
      arm.scores.push_back(std::isnan(value) ? std::nullopt : std::optional(value));
    }
    for (auto const& values : each.at("values")) {
      arm.values.emplace_back();
      for (auto const& value : values) arm.values.back().push_back(number_of(value));
    }
    if (auto const& chosen = each.at("chosen"); chosen.is_number_unsigned()) arm.chosen = chosen.get<std::size_t>();
    if (arm.scores.size() != tuning.points.size() || arm.values.size() != tuning.points.size() ||
        arm.chosen.value_or(0) >= tuning.points.size())
      throw Error(fmt::format("the tuning of '{}' does not fit the points of its grid", arm.name));
  }
  return tuning;
}

void read_ablation(Json const& json, Material& material) {
  material.name = json.at("ablation").get<std::string>();
  material.metric = json.at("metric").get<std::string>();
  material.better = json.value("better", "lower");
  material.at = json.value("at", "last");
  material.unit = json.value("unit", "");
  material.margin = real(json, "margin").value_or(0);
  material.seeds = json.at("seeds").size();
  material.trials_done = static_cast<std::size_t>(whole_at(json, "trials_done"));
  material.trials_of = json.contains("trials_of") ? static_cast<std::size_t>(whole_at(json, "trials_of")) : material.trials_done;
  material.baseline = json.value("baseline", "");
  material.varied = json.value("varied", material.varied);
  for (auto const& arm : json.at("arms")) material.arms.push_back(arm_of(arm));
  for (auto const& published : json.value("published", Json::array()))
    material.published.push_back(
        {published.value("name", ""), published.value("curve", ReportedElsewhere().curve), published.value("value", 0.0)});
  for (auto const& effect : json.value("effects", Json::array()))
    material.effects.push_back({effect.value("name", ""), effect.value("interaction", false), real(effect, "mean").value_or(std::nan("")),
                                interval(effect), effect.value("p", 1.0), static_cast<std::size_t>(whole_at(effect, "averaged")),
                                static_cast<std::size_t>(whole_at(effect, "combinations"))});
  if (auto const tuning = json.find("tuning"); tuning != json.end() && tuning->is_object()) material.tuning = tuning_of(*tuning);
  for (auto const& failure : json.value("failures", Json::array()))
    material.failures.push_back({failure.value("arm", ""), whole_at(failure, "seed"), failure.value("message", ""),
                                 failure.value("log", std::vector<std::string>{})});
  for (auto const& missing : json.value("missing", Json::array()))
    material.missing.emplace_back(missing.value("arm", ""), whole_at(missing, "seed"));
  material.sentences = json.value("sentences", material.sentences);
  material.warnings = json.value("warnings", material.warnings);
  material.base = json.value("base", "");
}

void read_run(Json const& json, Material& material) {
  material.single = true;
  material.name = json.at("name").get<std::string>();
  material.metric = json.contains("validation.loss") ? "validation.loss" : "loss";
  material.better = "lower";
  if (auto const* const info = find_metric(material.metric)) material.unit = info->unit;
  material.seeds = 1;
  ReportedArm run;
  run.name = material.name;
  run.folders = {"."};
  take_costs(json, run);
  run.mean = real(json, material.metric.c_str());
  auto const reference_losses = json.value("yardsticks", Json::object());
  for (auto const& [name, loss] : reference_losses.items()) {
    if (loss.is_number()) material.reference_losses.emplace_back(name, loss.get<double>());
  }
  if (auto const baselines = json.find("baselines"); baselines != json.end() && baselines->is_array())
    for (auto const& each : *baselines)
      if (each.is_object() && each.value("value", Json()).is_number())
        material.baselines.push_back({each.value("name", ""), each.value("metric", ""), each["value"].get<double>()});
  if (auto const cut = json.value("cut", ""); !cut.empty()) material.warnings.push_back(cut);
  if (auto const best = json.find("best"); best != json.end() && best->is_object())
    material.sentences.push_back(fmt::format(
        "The weights kept are those of step {}, the best of {} evaluations by {}: {:.5g}. Chosen on these data, it is optimistic.",
        whole_at(*best, "step"), whole_at(*best, "evaluations"), best->value("metric", ""), real(*best, "value").value_or(std::nan(""))));
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
  std::map<std::string, ReportedArm*> arms;
  for (auto& arm : material.arms) arms[arm.name] = &arm;
  check_written(material.folder, "results.csv");
  auto const lines = parse_csv(read_file(path));
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto const& line = lines[i];
    if (line.size() < 5) throw FileError(fmt::format("{}: line {} has {} fields, but needs 5 at least", path.string(), i + 1, line.size()));
    auto const found = arms.find(line.front());
    auto const seed = parsed_number<std::int64_t>(line[line.size() - 4]), step = parsed_number<std::int64_t>(line[line.size() - 3]);
    auto const value = parsed_number<double>(line.back());
    if (found == arms.end() || !seed || !step || !value)
      throw FileError(fmt::format("{}: line {} is no result of this ablation", path.string(), i + 1));
    auto& series = found->second->histories[*seed][line[line.size() - 2]];
    if (std::int64_t const last = series.empty() ? -1 : series.back().first; *step <= last)
      throw FileError(fmt::format("{}: line {}: step {} after step {}", path.string(), i + 1, *step, last));
    series.emplace_back(*step, *value);
  }
}

/// What the first run of each arm has read.
void read_what_was_read(Material& material) {
  for (auto const& arm : material.arms) {
    if (arm.folders.empty()) continue;
    for (auto const& item : files_read_in(material.folder / arm.folders.front())) {
      HashedFile const& file = item.second;
      auto const same = [&](HashedFile const& other) { return other.file == file.file && other.sha256 == file.sha256; };
      if (std::ranges::none_of(material.read, same)) material.read.push_back(file);
    }
  }
}

/// Why a folder has no summary.
std::string what_is_missing(fs::path const& folder) {
  if (!is_missing(folder / "config.yaml"))
    return "it is written when a run or a study has finished; the command that began this one goes on with it";
  return "is this the folder of a finished run, study or ablation?";
}

}  // namespace

ReportedArm const* Material::baseline_arm() const {
  auto const found = std::ranges::find(arms, baseline, &ReportedArm::name);
  return found == arms.end() ? nullptr : &*found;
}

NumberFormat Material::format() const {
  std::vector<double> means;
  for (auto const& arm : arms)
    if (arm.mean) means.push_back(*arm.mean);
  return NumberFormat::of(means);
}

std::optional<Grid> Material::grid() const {
  std::vector<Keys> keys;
  for (auto const& arm : arms) keys.push_back(arm.keys);
  return grid_of(keys);
}

std::vector<std::pair<std::string, std::string>> texts_of(Json const& json, char const* key) {
  std::vector<std::pair<std::string, std::string>> result;
  auto const found = json.find(key);
  if (found == json.end() || !found->is_object()) return result;
  for (auto const& [name, value] : found->items())
    result.emplace_back(name, value.is_string() ? value.get<std::string>() : json_text(value));
  return result;
}

Material read_material(fs::path const& folder) {
  fs::path const path = folder / "summary.json";
  if (is_missing(path)) throw FileError(fmt::format("{}: cannot be read: no such file ({})", path.string(), what_is_missing(folder)));
  auto const json = read_json(path);
  Material material;
  material.folder = folder;
  try {
    if (json.contains("ablation"))
      read_ablation(json, material);
    else
      read_run(json, material);
    material.steps = whole_at(json, "steps");
    material.environment = texts_of(json, "environment");
    material.configuration = json.value("configuration", "");
  } catch (std::exception const& error) {
    throw FileError(fmt::format("{}: is no summary of a run or an ablation: {}", path.string(), error.what()));
  }
  read_what_was_read(material);
  if (material.single)
    material.arms.front().histories[0] = read_history(folder);
  else
    read_curves(material);
  return material;
}

Yaml configuration_of(Material const& material, ReportedArm const& arm) {
  if (material.single) return parse_yaml(material.configuration, "config.yaml");
  if (arm.folders.empty()) return {};
  fs::path const summary = material.folder / arm.folders.front() / "summary.json";
  if (is_missing(summary)) return {};  // a trial that was put away since
  return parse_yaml(read_json(summary).value("configuration", ""), summary.string() + ": its configuration");
}

}  // namespace heed
