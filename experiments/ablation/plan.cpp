#include "experiments/ablation/plan.hpp"

#include <algorithm>
#include <set>
#include <span>

#include <fmt/format.h>

#include "experiments/ablation/keys.hpp"
#include "experiments/folder_name.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/nearest.hpp"
#include "experiments/scalar.hpp"
#include "nn/sha256.hpp"

namespace heed {

namespace fs = std::filesystem;

std::vector<Field> AblationSettings::fields() {
  return {
      {.name = "ablation", .target = &ablation, .help = ablation_help("ablation"), .required = true},
      {.name = "base", .target = &base, .help = ablation_help("base"), .required = true},
      {.name = "metric", .target = &metric, .help = ablation_help("metric")},
      {.name = "better", .target = &better, .help = ablation_help("better"), .words = {"lower", "higher"}},
      {.name = "at", .target = &at, .help = ablation_help("at"), .words = {"last", "best"}},
      {.name = "margin", .target = &margin, .help = ablation_help("margin"), .least = 0, .open = true},
  };
}

bool AblationSettings::higher_is_better() const {
  if (better) return *better == "higher";
  auto const* const info = find_metric(metric);
  return info != nullptr && info->better == Better::higher;
}

namespace {

/// The keys whose values are keys of the base, or lists of numbers.
std::vector<std::string> const free_keys{"set", "vary", "together", "add", "skip", "tune", "seeds", "baseline"};

std::vector<std::string> own_keys() {
  AblationSettings settings;
  std::vector<std::string> keys = free_keys;
  for (auto const& field : settings.fields()) keys.push_back(field.name);
  return keys;
}

bool is_own(std::string const& argument) {
  auto const keys = own_keys();
  return std::ranges::find(keys, argument.substr(0, argument.find_first_of(".="))) != keys.end();
}

[[noreturn]] void refuse(Yaml const& node, std::string const& key, std::string const& wants) {
  throw ConfigError(node.place, fmt::format("{}: wants {}, found {}", key, wants, found(node)));
}

Yaml const* value_at(Document const& document, std::string const& key) {
  auto const* const entry = document.root.entry(key);
  return entry != nullptr && entry->value.kind != Yaml::Kind::null ? &entry->value : nullptr;
}

/// A few words for a value, as they may stand in a folder's name: the word itself, or the values of a section one after the other.
std::string label_of(Yaml const& value) {
  std::string label = value.text;
  for (auto const& entry : value.entries) label += (label.empty() ? "" : "-") + label_of(entry.value);
  for (auto const& item : value.items) label += (label.empty() ? "" : "-") + label_of(item);
  return file_label(label);
}

/// Whether a value is not said without its key: a number or a truth value.
bool needs_key(Yaml const& value) {
  static std::set<std::string> const bare{"", "none", "null", "true", "false", "yes", "no", "on", "off"};
  return value.kind != Yaml::Kind::map && (bare.contains(value.text) || parse_real(value.text));
}

constexpr std::string_view between_values = " · ";

/// The value alone if an arm changes one key; else all values, `sparsemax · heads=2`.
std::string name_of(std::vector<Assignment> const& changes) {
  if (changes.size() == 1) return cut_label(label_of(changes.front().value));
  std::string name;
  for (auto const& [key, value] : changes) {
    if (!name.empty()) name += between_values;
    name += (needs_key(value) ? last_word(key) + "=" : "") + label_of(value);
  }
  return cut_label(std::move(name));
}

/// An arm's name as a part of a folder's: `sparsemax,heads=2`.
std::string folder_label(std::string name) {
  for (std::size_t at = 0; (at = name.find(between_values, at)) != name.npos; ++at) name.replace(at, between_values.size(), ",");
  return name;
}

/// `{key: [value, …], …}` as lists of assignments, one list a key.
std::vector<std::vector<Assignment>> axes_of(Yaml const& node, std::string const& section) {
  if (node.kind != Yaml::Kind::map) refuse(node, section, "keys of the base with lists of values");
  std::vector<std::vector<Assignment>> axes;
  for (auto const& entry : node.entries) {
    if (entry.value.kind != Yaml::Kind::list || entry.value.items.empty())
      refuse(entry.value, section + ": " + entry.key, "a list of values");
    std::vector<Assignment> axis;
    for (auto const& item : entry.value.items) axis.push_back({entry.key, item});
    axes.push_back(std::move(axis));
  }
  return axes;
}

constexpr double most_arms = 10'000, most_runs = 100'000;

/// Refuses more of something than can be meant, before any of it is made.
void limit(Place const& place, std::string const& what, double count, double most) {
  if (count > most) throw ConfigError(place, fmt::format("{} {}; at most {} are allowed", count, what, most));
}

/// How many combinations of one assignment from each axis there are.
double combinations(std::vector<std::vector<Assignment>> const& axes) {
  double count = 1;
  for (auto const& axis : axes) count *= static_cast<double>(axis.size());
  return count;
}

/// Every combination of one assignment from each axis.
std::vector<std::vector<Assignment>> product(std::vector<std::vector<Assignment>> const& axes) {
  std::vector<std::vector<Assignment>> all{{}};
  for (auto const& axis : axes) {
    std::vector<std::vector<Assignment>> longer;
    for (auto const& before : all) {
      for (auto const& assignment : axis) {
        longer.push_back(before);
        longer.back().push_back(assignment);
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// `together:` one assignment of every axis at a time.
std::vector<std::vector<Assignment>> zipped(Yaml const& node) {
  auto const axes = axes_of(node, "together");
  std::vector<std::vector<Assignment>> rows(axes.empty() ? 1 : axes.front().size());
  for (auto const& axis : axes) {
    if (axis.size() != rows.size())
      throw ConfigError(axis.front().value.place, fmt::format("together: {} has {} values, but {} has {}: they move in step",
                                                              axis.front().key, axis.size(), axes.front().front().key, rows.size()));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back(axis[i]);
  }
  return rows;
}

std::vector<Assignment> assignments_of(Yaml const& node, std::string const& section) {
  if (node.kind != Yaml::Kind::map) refuse(node, section, "keys of the base with their values");
  std::vector<Assignment> changes;
  for (auto const& entry : node.entries) changes.push_back({entry.key, entry.value});
  return changes;
}

bool agrees(Arm const& arm, std::vector<Assignment> const& wanted) {
  return std::ranges::all_of(wanted, [&](Assignment const& want) {
    return std::ranges::any_of(arm.changes,
                               [&](Assignment const& has) { return has.key == want.key && emit_line(has.value) == emit_line(want.value); });
  });
}

std::vector<std::int64_t> seeds_of(Yaml const& node, std::string const& key, std::int64_t first) {
  std::vector<std::int64_t> seeds;
  std::set<std::int64_t> seen;
  if (auto const count = node.kind == Yaml::Kind::scalar ? parse_integer(node.text) : std::nullopt;
      count && *count >= 1 && *count <= 10'000) {
    for (std::int64_t i = 0; i < *count; ++i) seeds.push_back(first + i);
    return seeds;
  }
  if (node.kind != Yaml::Kind::list || node.items.empty()) refuse(node, key, "how many, or a list of seeds");
  for (auto const& item : node.items) {
    auto const seed = item.kind == Yaml::Kind::scalar ? parse_integer(item.text) : std::nullopt;
    if (!seed || *seed < 0) refuse(item, key, "seeds, integers ≥ 0");
    if (!seen.insert(*seed).second) throw ConfigError(item.place, fmt::format("{}: {} stands there twice", key, *seed));
    seeds.push_back(*seed);
  }
  return seeds;
}

std::vector<Arm> arms_of(Document const& file) {
  std::vector<Arm> arms;
  Yaml const* const vary = value_at(file, "vary");
  Yaml const* const together = value_at(file, "together");
  if (vary != nullptr || together != nullptr) {
    auto const axes = vary != nullptr ? axes_of(*vary, "vary") : std::vector<std::vector<Assignment>>{};
    auto const steps = together != nullptr ? zipped(*together) : std::vector<std::vector<Assignment>>{{}};
    limit(vary != nullptr ? vary->place : together->place, "arms", combinations(axes) * static_cast<double>(steps.size()), most_arms);
    for (auto const& changes : product(axes)) {
      for (auto const& more : steps) {
        auto all = joined(changes, more);
        arms.push_back({name_of(all), std::move(all)});
      }
    }
  }
  if (Yaml const* const skip = value_at(file, "skip")) {
    if (skip->kind != Yaml::Kind::list) refuse(*skip, "skip", "a list of {key: value, …}");
    for (auto const& item : skip->items) {
      auto const unwanted = assignments_of(item, "skip");
      if (std::erase_if(arms, [&](Arm const& arm) { return agrees(arm, unwanted); }) == 0)
        throw ConfigError(item.place, fmt::format("skip: no arm has {}", emit_line(item)));
    }
  }
  if (Yaml const* const add = value_at(file, "add")) {
    if (add->kind != Yaml::Kind::map) refuse(*add, "add", "names of arms with what they change: {name: {key: value}}");
    for (auto const& entry : add->entries) {
      check_arm_name(entry.place, entry.key);
      arms.push_back({entry.key, assignments_of(entry.value, "add: " + entry.key)});
    }
  }
  if (arms.empty()) throw ConfigError(file.root.place, "there is nothing to compare: give vary, together or add");
  limit(file.root.place, "arms", static_cast<double>(arms.size()), most_arms);
  std::set<std::string> names;
  for (auto const& arm : arms) {
    if (!names.insert(arm.name).second) throw ConfigError(file.root.place, fmt::format("two arms would both be called '{}'", arm.name));
  }
  return arms;
}

std::size_t baseline_of(Document const& file, std::vector<Arm> const& arms) {
  Yaml const* const node = value_at(file, "baseline");
  if (node == nullptr) return 0;
  std::vector<std::size_t> fitting;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    names.push_back(arms[i].name);
    bool const fits = node->kind == Yaml::Kind::scalar
                          ? arms[i].name == node->text || folder_label(arms[i].name) == node->text || arms[i].name == label_of(*node)
                          : agrees(arms[i], assignments_of(*node, "baseline"));
    if (fits) fitting.push_back(i);
  }
  if (fitting.size() == 1) return fitting.front();
  throw ConfigError(node->place, fmt::format("baseline: {} fits {} arms, not one{} (there are {})", emit_line(*node), fitting.size(),
                                             did_you_mean(node->text, names), fmt::join(names, ", ")));
}

std::optional<Tuning> tuning_of(Document const& file, std::vector<std::int64_t> const& seeds) {
  Yaml const* const node = value_at(file, "tune");
  if (node == nullptr) return std::nullopt;
  if (node->kind != Yaml::Kind::map) refuse(*node, "tune", "{grid: {key: [values]}, seeds: 2}");
  std::vector<std::string> const known{"grid", "seeds"};
  for (auto const& entry : node->entries) {
    if (std::ranges::find(known, entry.key) == known.end())
      throw ConfigError(entry.place, fmt::format("tune: unknown key '{}'{}", entry.key, did_you_mean(entry.key, known)));
  }
  auto const* const grid = node->entry("grid");
  if (grid == nullptr) throw ConfigError(node->place, "tune: the key 'grid' is missing: {grid: {train.optimizer.lr: [0.001, 0.003]}}");
  Tuning tuning;
  auto const axes = axes_of(grid->value, "tune: grid");
  limit(grid->value.place, "points of the tuning grid", combinations(axes), most_arms);
  for (auto& changes : product(axes)) {
    auto name = name_of(changes);
    tuning.points.push_back({std::move(name), std::move(changes)});
  }
  std::int64_t const free = 1 + *std::ranges::max_element(seeds);
  auto const* const own = node->entry("seeds");
  tuning.seeds = own != nullptr ? seeds_of(own->value, "tune: seeds", free) : std::vector{free, free + 1};
  std::set<std::int64_t> const compared(seeds.begin(), seeds.end());
  for (auto const seed : tuning.seeds) {
    if (compared.contains(seed))
      throw ConfigError(node->place, fmt::format("tune: seed {} is also one of the comparison's; tuning needs seeds of its own", seed));
  }
  return tuning;
}

std::vector<std::string> varied_keys(std::vector<Arm> const& arms) {
  std::vector<std::string> keys;
  for (auto const& arm : arms) {
    for (auto const& change : arm.changes) {
      if (std::ranges::find(keys, change.key) == keys.end()) keys.push_back(change.key);
    }
  }
  return keys;
}

/// The document without what is no field of AblationSettings; a key that is neither is refused.
Document plain_part(Document const& file) {
  Document plain = file;
  auto const known = own_keys();
  for (auto const& entry : file.root.entries) {
    if (std::ranges::find(known, entry.key) == known.end())
      throw ConfigError(entry.place, fmt::format("unknown key '{}'{} (keys of a run stand in the base, or in vary)", entry.key,
                                                 did_you_mean(entry.key, known)));
  }
  std::erase_if(plain.root.entries, [](auto const& entry) { return std::ranges::find(free_keys, entry.key) != free_keys.end(); });
  return plain;
}

/// That there is such a metric, and that it is known which of its values are better.
void check_metric(Document const& file, AblationSettings const& settings) {
  auto const place = place_of(file, file.root.entry("metric") != nullptr ? "metric" : "ablation");
  auto const* const info = find_metric(settings.metric);
  if (info == nullptr) {
    std::vector<std::string> names;
    for (auto const& each : metrics()) names.push_back(each.name);
    throw ConfigError(place, fmt::format("metric: there is no metric '{}'{} (heed list metrics shows all)", settings.metric,
                                         did_you_mean(settings.metric, names)));
  }
  if (!info->better && !settings.better)
    throw ConfigError(place, fmt::format("metric: of '{}' neither low nor high values are better; say `better: lower` or `better: higher`",
                                         settings.metric));
}

}  // namespace

std::string last_word(std::string const& key) { return key.substr(key.rfind('.') + 1); }

bool is_ablation(Document const& document) {
  auto const has = [&](char const* key) { return document.root.entry(key) != nullptr; };
  if (has("ablation")) return true;
  for (char const* key : {"vary", "together", "base", "baseline", "tune"})
    if (has(key) && !has("study"))
      throw ConfigError(document.root.entry(key)->place,
                        fmt::format("{}: is a key of an ablation, but the key 'ablation' (its name) is missing", key));
  return false;
}

namespace {

/// Names and seeds of trials are given by the ablation: elsewhere they would have no effect.
void check_named(Place const& place, std::string const& key) {
  if (key == "name")
    throw ConfigError(place, "name: the folder of an ablation is named by ablation (ablation=NAME), its trials by their arms");
  if (key == "seed") throw ConfigError(place, "seed: the trials of an ablation take theirs from seeds (seeds=6, seeds=[7])");
}

}  // namespace

namespace {

/// What the file sets in the base, and the command line after it.
std::vector<Assignment> set_in_base(Document const& file, std::vector<std::string> const& overrides) {
  std::vector<Assignment> all;
  if (Yaml const* const set = value_at(file, "set")) all = assignments_of(*set, "set");
  for (auto const& override : overrides) {
    if (is_own(override)) continue;
    Document one;
    assign(one, override);  // tells what is wrong with it
    auto const key = override.substr(0, override.find('='));
    std::erase_if(all, [&](Assignment const& before) { return before.key == key; });
    all.push_back({key, *one.root.find(key)});
  }
  for (auto const& each : all) check_named(each.value.place, each.key);
  return all;
}

/// The file with all that makes it complete.
std::string resolved(Document file, std::vector<Assignment> const& set, fs::path const& base) {
  auto& entries = file.root.entries;
  auto const at = [&](std::string const& key, std::size_t place) -> Yaml& {
    auto found = std::ranges::find(entries, key, &Yaml::Entry::key);
    if (found == entries.end()) found = entries.insert(entries.begin() + static_cast<std::ptrdiff_t>(place), {key, {}, {}});
    return found->value;
  };
  at("base", 0) = Yaml::scalar(base.string());
  if (set.empty()) return emit(file.root);
  Yaml section;
  section.kind = Yaml::Kind::map;
  for (auto const& [key, value] : set) section.entries.push_back({key, {}, value});
  auto const after = std::ranges::find(entries, "base", &Yaml::Entry::key) - entries.begin() + 1;
  at("set", static_cast<std::size_t>(after)) = section;
  return emit(file.root);
}

}  // namespace

Ablation load_ablation(fs::path const& path, std::vector<std::string> const& overrides, Places const& places) {
  Document file = load(path);
  for (auto const& override : overrides) {
    if (is_own(override)) assign(file, override);
  }
  Ablation result;
  fill(plain_part(file), result.settings);
  check_metric(file, result.settings);
  check_folder_name(place_of(file, "ablation"), "ablation", result.settings.ablation);
  result.arms = arms_of(file);
  for (auto const& arm : result.arms)
    for (auto const& change : arm.changes) check_named(change.value.place, change.key);
  result.varied = varied_keys(result.arms);
  Yaml const* const seeds = value_at(file, "seeds");
  result.seeds = seeds != nullptr ? seeds_of(*seeds, "seeds", 1) : std::vector<std::int64_t>{1, 2, 3, 4, 5, 6};
  result.baseline = baseline_of(file, result.arms);
  result.tuning = tuning_of(file, result.seeds);
  double const arms = static_cast<double>(result.arms.size());
  limit(file.root.place, "runs", arms * static_cast<double>(result.seeds.size()), most_runs);
  if (auto const& tuning = result.tuning)
    limit(place_of(file, "tune"), "runs to tune", arms * static_cast<double>(tuning->points.size() * tuning->seeds.size()), most_runs);
  fs::path const base = (fs::absolute(path).parent_path() / result.settings.base).lexically_normal();
  std::error_code unreadable;
  if (!fs::is_regular_file(base, unreadable))
    throw ConfigError(place_of(file, "base"), fmt::format("base: there is no file {}", base.string()));
  result.base = load(base);
  auto const set = set_in_base(file, overrides);
  for (auto const& [key, value] : set) assign(result.base, key, value);
  result.resolved = resolved(file, set, base);
  result.places = places;
  result.places.config_folder = base.parent_path();
  for (auto const& arm : result.arms) {
    trial_of(result, arm.name, arm.changes, result.seeds.front());
    for (std::size_t i = 0; result.tuning && i < result.tuning->points.size(); ++i)
      tuning_trial(result, arm, result.tuning->points[i], result.tuning->seeds.front());
  }
  return result;
}

LoadedExperiment trial_of(Ablation const& ablation, std::string const& arm, std::vector<Assignment> const& changes, std::int64_t seed) {
  LoadedExperiment trial{ablation.base, {}, ablation.places};
  for (auto const& change : changes) assign(trial.document, change.key, change.value);
  fill(trial.document, trial.settings);
  trial.settings.seed = seed;
  trial.settings.name.clear();  // not a part of what is measured
  auto const text = emit(trial.settings);
  auto const hash = sha256(std::as_bytes(std::span(text)));
  trial.settings.name = fmt::format("{}-seed{}-{}", folder_label(arm), seed, hash.substr(0, 8));
  trial.places.output = ablation.folder();
  return trial;
}

LoadedExperiment tuning_trial(Ablation const& ablation, Arm const& arm, Arm const& point, std::int64_t seed) {
  return trial_of(ablation, fmt::format("tune-{}-{}", arm.name, point.name), joined(arm.changes, point.changes), seed);
}

LoadedExperiment first_trial(Ablation const& ablation, Arm const& arm) {
  if (ablation.tuning) return tuning_trial(ablation, arm, ablation.tuning->points.front(), ablation.tuning->seeds.front());
  return trial_of(ablation, arm.name, arm.changes, ablation.seeds.front());
}

std::vector<Assignment> joined(std::vector<Assignment> changes, std::vector<Assignment> const& more) {
  changes.insert(changes.end(), more.begin(), more.end());
  return changes;
}

}  // namespace heed
