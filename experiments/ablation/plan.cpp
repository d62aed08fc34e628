#include "experiments/ablation/plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "experiments/ablation/arms.hpp"
#include "experiments/config/build_info.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/scalar.hpp"
#include "experiments/config/table.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/train/weights.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

std::vector<AblationKey> const& ablation_keys() {
  static std::vector<AblationKey> const all{
      {"ablation", "name of the ablation and of its folder", "ablation: positions"},
      {"base", "the run that the arms modify: a file, relative to this file, or the keys themselves", "base: ../gpt/grammar.yaml"},
      {"paths", "folder to which paths in the base are relative, itself relative to this file (default: the folder of the base's file)",
       "paths: ../gpt"},
      {"set", "keys of the base that are changed in all arms", "set: {train.steps: 100}"},
      {"vary", "keys of the base with lists of values: every combination is an arm",
       "vary: {model.position: [learned, rotary], model.heads: [1, 2]}"},
      {"together", "keys whose values vary jointly: the first of each, the second of each, …",
       "together: {model.width: [64, 128], train.optimizer.lr: [2.0e-3, 1.0e-3]}"},
      {"add", "further arms by name, with the keys that they change", "add: {wide: {model.width: 256}}"},
      {"skip", "combinations of vary and together that are left out", "skip: [{model.position: rotary, model.heads: 2}]"},
      {"seeds", "number of seeds (1, 2, …), or a list of them; every arm is trained with each", "seeds: 6"},
      {"baseline", "the arm with which the others are compared: its name or its values (default: the first arm)",
       "baseline: {model.position: learned, model.heads: 1}"},
      {"metric", "the metric that is compared (heed list metrics)", "metric: validation.accuracy"},
      {"better", "lower or higher, for metrics that do not define it (default: as the metric defines)", "better: lower"},
      {"at", "which value of a trial is compared: the last, or the best", "at: best"},
      {"margin", "equivalence margin: the largest difference that does not matter; without it no arm is called equivalent", "margin: 0.01"},
      {"stop_losers", "arms that are worse than the best by more than the margin, by evidence after each seed, get no more seeds",
       "stop_losers: true"},
      {"until_verdict", "every arm gets so many seeds, and then more, at most `seeds`, until its difference to the baseline has a verdict",
       "until_verdict: 6"},
      {"trials", "folder of the trials, relative to that of the ablation: ablations that name the same one share trials", "trials: .."},
      {"claim", "what a paper says, and the criteria by which it holds here, registered before the first trial (heed claims)",
       "claim: {says: …, source: …, criteria: [{kind: difference, arm: rotary · heads=1, from: learned · heads=1, at_most: -0.1}]}"},
      {"shard", "trains only part I of N of the trials, counted from 0, for machines that share no folder (clusters.md)", "shard: 0/4"},
      {"tune",
       "a grid (or `random: {train.optimizer.lr: {log: [1.0e-4, 1.0e-2]}}, trials: 12`; integers as a list) from which the best point of "
       "every arm is selected, on separate seeds: a list, or their number (10001, 10002, …)",
       "tune: {grid: {train.optimizer.lr: [1.0e-3, 3.0e-3]}, seeds: 2}"},
      {"published", "published values of the metric, shown for comparison: a number, or numbers by step",
       "published: {a tutorial's run: {1000: 0.225, 7000: 0.954}}"},
  };
  return all;
}

std::string const& ablation_help(std::string const& name) { return std::ranges::find(ablation_keys(), name, &AblationKey::name)->help; }

std::vector<Field> AblationSettings::fields() {
  auto const key = [](auto* target, char const* name) { return field(target, name, ablation_help(name)); };
  return {key(&ablation, "ablation").mandatory(),
          key(&base, "base").mandatory(),
          key(&paths, "paths"),
          key(&metric, "metric"),
          key(&better, "better").one_of({"lower", "higher"}),
          key(&at, "at").one_of({"last", "best"}),
          key(&margin, "margin").above(0),
          key(&stop_losers, "stop_losers"),
          key(&until_verdict, "until_verdict").in(1, 10'000),
          key(&trials, "trials"),
          key(&claim, "claim"),
          key(&shard, "shard")};
}

bool AblationSettings::higher_is_better() const {
  if (better) return *better == "higher";
  auto const* const info = find_metric(metric);
  return info != nullptr && info->better == Better::higher;
}

Question AblationSettings::question() const {
  return {.better = higher_is_better() ? Better::higher : Better::lower, .margin = margin.value_or(0), .bounds = bounds_of(metric)};
}

namespace {

/// Keys of an ablation that are not fields of AblationSettings: their values are keys of the base, or numbers.
std::vector<std::string> const free_keys{"set", "vary", "together", "add", "skip", "tune", "seeds", "baseline", "published"};

bool is_own(std::string const& argument) {
  return std::ranges::count(ablation_keys(), argument.substr(0, argument.find_first_of(".=")), &AblationKey::name) > 0;
}

/// The document with only the fields of AblationSettings. Throws ConfigError for an unknown key.
Document plain_part(Document const& file) {
  Document plain = file;
  for (auto const& entry : file.root.entries)
    if (!is_own(entry.key))
      throw ConfigError(entry.location, fmt::format("unknown key '{}'{} (keys of a run belong in the base, or in vary)", entry.key,
                                                    did_you_mean(entry.key, mapped(ablation_keys(), &AblationKey::name))));
  std::erase_if(plain.root.entries, [](auto const& entry) { return std::ranges::find(free_keys, entry.key) != free_keys.end(); });
  for (auto& entry : plain.root.entries)
    if (entry.key == "base" && entry.value.kind == Yaml::NodeKind::map) entry.value = Yaml::scalar("this file");
  return plain;
}

/// Throws ConfigError if there is no such metric, or if it is not known whether lower or higher values are better.
void check_metric(Document const& file, Location const& location, AblationSettings const& settings) {
  auto const* const info = find_metric(settings.metric);
  if (info == nullptr)
    throw ConfigError(location, fmt::format("metric: there is no metric '{}'{} (heed list metrics shows all){}", settings.metric,
                                            did_you_mean(settings.metric, Registry<MetricInfo>::names()), built_without()));
  if (!info->better && !settings.better)
    throw ConfigError(location,
                      fmt::format("metric: '{}' does not define whether lower or higher is better; add `better: lower` or `better: higher`",
                                  settings.metric));
  if (info->better && settings.better && *settings.better != name(*info->better))
    throw ConfigError(location_of(file, "better"), fmt::format("better: {} is better for '{}'", name(*info->better), settings.metric));
}

/// Throws ConfigError for `name` and `seed`: the ablation sets them for its trials, so they would have no effect here.
void check_named(Location const& location, std::string const& key) {
  if (key == "name")
    throw ConfigError(location,
                      "name: the folder of an ablation is named by ablation=NAME, that of a suite by suite=NAME, trials by their arms");
  if (key == "seed") throw ConfigError(location, "seed: the trials of an ablation take theirs from seeds (seeds=6, seeds=[7])");
}

/// The changes to the base: those of `set` in the file, then those of the command line, which take precedence.
std::vector<Assignment> set_in_base(Document const& file, std::vector<std::string> const& overrides) {
  std::vector<Assignment> all;
  if (Yaml const* const set = value_at(file, "set")) all = assignments_of(*set, "set");
  for (auto const& override : overrides) {
    if (is_own(override)) continue;
    Document one;
    assign(one, override);  // throws if it is malformed
    auto const key = override.substr(0, override.find('='));
    std::erase_if(all, [&](Assignment const& before) { return before.key == key; });
    all.push_back({key, {}, *one.root.find(key)});
  }
  for (auto const& each : all) check_named(each.value.location, each.key);
  return all;
}

/// The base: keys in the ablation's file, or the file that it names.
Document base_of(Document const& file, fs::path const& folder, std::string const& name) {
  auto const& value = file.root.entry("base")->value;
  if (value.kind == Yaml::NodeKind::map && !value.text.empty())
    throw ConfigError(value.location, fmt::format("base: '{}' is a file, whose keys are changed without 'base.' before them", value.text));
  if (value.kind == Yaml::NodeKind::map) return {file.file, value};
  fs::path const path = (folder / name).lexically_normal();
  if (!is_file(path)) throw ConfigError(value.location, fmt::format("base: there is no file {}{}", path.string(), nearest_file(path)));
  return load(path);
}

/// Quotes strings that other YAML readers would take for another type, among the ablation's own keys and the run's keys in them.
void quote_texts(Document& file) {
  AblationSettings own;
  Experiment run;
  for (auto& [key, location, value] : file.root.entries) {
    bool const of_run = key == "base" || std::ranges::find(free_keys, key) != free_keys.end();
    bool const named = key == "add" || key == "tune";  // the keys of the run are below a name
    if (named)
      for (auto& entry : value.entries) heed::quote_texts(entry.value, "", run);
    else
      heed::quote_texts(value, of_run ? "" : key, of_run ? static_cast<Settings&>(run) : own);
  }
}

/// The file as complete YAML: with the base itself, the folder of its paths, and all changes.
std::string resolved(Document file, std::vector<Assignment> const& set, Document const& base, fs::path const& paths) {
  auto& entries = file.root.entries;
  auto const put = [&](std::string const& key, Yaml const& value) {  // behind base, if it is not there
    auto const at = [&](std::string const& of) { return std::ranges::find(entries, of, &Yaml::Entry::key); };
    auto const found = at(key) == entries.end() ? entries.insert(at("base") + 1, {key, {}, {}}) : at(key);
    found->value = value;
  };
  put("base", base.root);
  put("paths", Yaml::scalar(paths.string()));
  if (!set.empty()) put("set", Yaml::map(set));
  std::erase_if(entries, [](auto const& entry) { return entry.key == "shard" && entry.value.text == "0/1"; });  // the whole
  quote_texts(file);
  return emit(file.root);
}

/// `shard: I/N`. Throws ConfigError unless 0 ≤ I < N, and there are enough trials for every shard to have one.
Shard shard_of(Document const& file, Ablation const& ablation) {
  auto const& text = ablation.settings.shard;
  if (!text) return {};
  auto const slash = text->find('/');
  auto const index = parse_integer(text->substr(0, slash)),
             count = slash == text->npos ? std::nullopt : parse_integer(text->substr(slash + 1));
  if (!index || !count || *index < 0 || *index >= *count)
    throw ConfigError(location_of(file, "shard"), fmt::format("shard: wants I/N with 0 ≤ I < N, like 0/3, found '{}'", *text));
  std::size_t const max_shards = ablation.tuning ? ablation.arms.size() : ablation.arms.size() * ablation.seeds.size();
  if (static_cast<std::size_t>(*count) > max_shards)
    throw ConfigError(location_of(file, "shard"), fmt::format("shard: {} shards are more than the {} {}", *count, max_shards,
                                                              ablation.tuning ? "arms, which `tune:` does not divide" : "trials"));
  return {static_cast<std::size_t>(*index), static_cast<std::size_t>(*count)};
}

/// The settings as YAML, without those that do not affect any result.
std::string measured(Experiment& settings) {
  settings.name.clear();
  Yaml all = tree(settings);
  auto const inside = [](Yaml& map, std::string_view key) -> Yaml& {
    return std::ranges::find(map.entries, key, &Yaml::Entry::key)->value;
  };
  std::erase_if(inside(inside(all, "train"), "log").entries, [](Yaml::Entry const& entry) { return entry.key == "tensorboard"; });
  return emit(all);
}

double number_at(Yaml const& node, std::string const& key) {
  auto const value = node.kind == Yaml::NodeKind::scalar ? parse_real(node.text) : std::nullopt;
  if (!value)
    throw ConfigError(node.location, fmt::format("{}: wants a number, or numbers by step {{1000: 22.5}}, found {}", key, found(node)));
  return *value;
}

Published one_of(std::string const& name, Yaml const& node) {
  auto const key = "published: " + name;
  Published published{name, {}, 0};
  if (node.kind != Yaml::NodeKind::map) {
    published.value = number_at(node, key);
    return published;
  }
  for (auto const& entry : node.entries) {
    auto const step = parse_integer(entry.key);
    if (!step || *step < 0) throw ConfigError(entry.location, fmt::format("{}: '{}' is not a step", key, entry.key));
    if (!published.curve.empty() && *step <= published.curve.back().first)
      throw ConfigError(entry.location, fmt::format("{}: step {} after step {}", key, *step, published.curve.back().first));
    published.curve.emplace_back(*step, number_at(entry.value, key));
  }
  if (published.curve.empty()) throw ConfigError(node.location, key + ": has no numbers");
  published.value = published.curve.back().second;
  return published;
}

/// `published: {a tutorial's run: {1000: 22.5, 7000: 95.4}, a paper: 28.1}`.
std::vector<Published> published_of(Document const& file) {
  Yaml const* const node = value_at(file, "published");
  if (node == nullptr) return {};
  if (node->kind != Yaml::NodeKind::map)
    throw ConfigError(node->location, fmt::format("published: wants numbers by whose they are, {{a paper: 28.1}}, found {}", found(*node)));
  return mapped(node->entries, [](Yaml::Entry const& entry) { return one_of(entry.key, entry.value); });
}

}  // namespace

bool is_ablation(Document const& document) {
  auto const has = [&](char const* key) { return document.root.entry(key) != nullptr; };
  if (has("ablation")) return true;
  for (char const* key : {"vary", "together", "base", "baseline", "tune"})
    if (has(key) && !has("study") && !has("suite"))
      throw ConfigError(document.root.entry(key)->location,
                        fmt::format("{}: is a key of an ablation, but the key 'ablation' (its name) is missing", key));
  return false;
}

Ablation load_ablation(Document file, std::vector<std::string> const& overrides, Folders const& folders) {
  for (auto const& override : overrides)
    if (is_own(override)) assign(file, override);
  Ablation result;
  fill(plain_part(file), result.settings);
  result.metric_location = location_of(file, file.root.entry("metric") != nullptr ? "metric" : "ablation");
  check_metric(file, result.metric_location, result.settings);
  check_folder_name(location_of(file, "ablation"), "ablation", result.settings.ablation);
  fs::path const folder = fs::absolute(file.file).parent_path();
  result.base = base_of(file, folder, result.settings.base);
  result.folders = folders;
  result.folders.config_folder = result.settings.paths ? (folder / *result.settings.paths).lexically_normal()
                                                       : fs::absolute(result.base.file).lexically_normal().parent_path();
  auto const set = set_in_base(file, overrides);
  Document with_model = result.base;
  for (auto const& each : set) assign(with_model, each.key, each.value);
  if (inherit_model(with_model, result.folders)) assign(result.base, "model", *with_model.root.find("model"));
  result.resolved = resolved(file, set, result.base, result.folders.config_folder);
  for (auto const& each : set) assign(result.base, each.key, each.value);
  result.arms = arms_of(file, result.base);
  for (auto const& arm : result.arms)
    for (auto const& change : arm.changes) {
      check_named(change.value.location, change.key);
      if (std::ranges::find(result.varied, change.key) == result.varied.end()) result.varied.push_back(change.key);
    }
  for (auto const& each : set) {
    auto const sets = [&](Arm const& arm) { return std::ranges::count(arm.changes, each.key, &Assignment::key) > 0; };
    if (std::ranges::all_of(result.arms, sets))
      throw ConfigError(each.value.location, fmt::format("{}: has no effect, because every arm sets it", each.key));
  }
  Yaml const* const seeds = value_at(file, "seeds");
  result.seeds = seeds != nullptr ? seeds_of(*seeds, "seeds", 1) : std::vector<Index>{1, 2, 3, 4, 5, 6};
  result.tuning = tuning_of(file, result.seeds);
  result.published = published_of(file);
  double const arms = static_cast<double>(result.arms.size());
  limit(file.root.location, "runs", arms * static_cast<double>(result.seeds.size()), max_runs);
  if (auto const& tuning = result.tuning)
    limit(location_of(file, "tune"), "runs to tune", arms * static_cast<double>(tuning->points.size() * tuning->seeds.size()), max_runs);
  check_distinct(result.base, result.arms, std::vector<Arm>(1));
  if (result.tuning) check_distinct(result.base, result.arms, result.tuning->points);
  result.baseline = baseline_of(file, result.base, result.arms);
  check_claim(file, result);
  result.shard = shard_of(file, result);
  if ((result.settings.by_evidence() || result.settings.trials) && result.shard.count > 1)
    throw ConfigError(location_of(file, "shard"),
                      "shard: does not go with stop_losers and until_verdict, which need all trials, nor with trials");
  return result;
}

std::size_t Ablation::trials_in_shard() const {
  std::size_t const all = arms.size() * seeds.size(), tuned = tuning ? tuning->points.size() * tuning->seeds.size() : 0;
  std::size_t const units = tuning ? arms.size() : all, each = tuning ? seeds.size() + tuned : 1;
  return (units - shard.index + shard.count - 1) / shard.count * each;
}

Ablation ablation_in(fs::path const& folder, std::vector<std::string> const& overrides, Folders const& folders) {
  Ablation ablation = load_ablation(folder / "ablation.yaml", overrides, folders);
  auto here = fs::absolute(folder).lexically_normal();
  if (!here.has_filename()) here = here.parent_path();
  ablation.folders.output = here.parent_path();
  ablation.settings.ablation = here.filename().string();
  return ablation;
}

LoadedExperiment trial_of(Ablation const& ablation, std::string const& arm, std::vector<Assignment> const& changes, Index seed) {
  LoadedExperiment trial{ablation.base, {}, ablation.folders};
  for (auto const& change : changes) assign(trial.document, change.key, change.value);
  fill(trial.document, trial.settings);
  trial.settings.seed = seed;
  auto const hash = sha256(measured(trial.settings));
  trial.settings.name = fmt::format("{}-seed{}-{}", folder_label(arm), seed, hash.substr(0, 8));
  if (trial.folders.runs.empty()) trial.folders.runs = trial.folders.output;
  trial.folders.output = ablation.trials_folder();
  return trial;
}

LoadedExperiment tuning_trial(Ablation const& ablation, Arm const& arm, Arm const& point, Index seed) {
  return trial_of(ablation, fmt::format("tune-{}-{}", arm.name, point.name), joined_changes(arm.changes, point.changes), seed);
}

std::vector<Assignment> joined_changes(std::vector<Assignment> changes, std::vector<Assignment> const& more) {
  changes.insert(changes.end(), more.begin(), more.end());
  return changes;
}

std::optional<std::string> beside_published(Published const& published, std::string const& arm, Estimate const& measured, Index steps) {
  if (!published.curve.empty() && published.curve.back().first != steps) return std::nullopt;
  auto const shown = [](double value) { return short_number(value, 4); };
  if (!measured.interval) return fmt::format("{}: {}; {} reports {}", arm, shown(measured.mean), published.name, shown(published.value));
  auto const [low, high] = *measured.interval;
  return fmt::format("{}: {} [{}, {}]; {} reports {}, which lies {}", arm, shown(measured.mean), shown(low), shown(high), published.name,
                     shown(published.value),
                     published.value < low    ? "below"
                     : published.value > high ? "above"
                                              : "inside");
}

}  // namespace heed
