#include "experiments/ablation/arms.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/nearest.hpp"
#include "experiments/config/scalar.hpp"
#include "experiments/report/grid.hpp"
#include "experiments/run/folder_name.hpp"

namespace heed {

namespace {

[[noreturn]] void refuse(Yaml const& node, std::string const& key, std::string const& wants) {
  throw ConfigError(node.place, fmt::format("{}: wants {}, found {}", key, wants, found(node)));
}

}  // namespace

Yaml const* value_at(Document const& document, std::string const& key) {
  auto const* const entry = document.root.entry(key);
  return entry != nullptr && entry->value.kind != Yaml::Kind::null ? &entry->value : nullptr;
}

namespace {

/// A few words for a value, as they may stand in a folder's name: the word itself, or the values of a section one after the other.
std::string label_of(Yaml const& value) {
  std::string label = value.text;
  if (auto const at = label.find(".e-"); at != label.npos) label.erase(at, 1);  // 1.e-3 of a saved ablation.yaml was 1e-3
  for (auto const& entry : value.entries) label += (label.empty() ? "" : "-") + label_of(entry.value);
  for (auto const& item : value.items) label += (label.empty() ? "" : "-") + label_of(item);
  return file_label(label);
}

bool is_truth(Yaml const& value) {
  static std::set<std::string> const words{"true", "false", "yes", "no", "on", "off"};
  return value.kind == Yaml::Kind::scalar && words.contains(value.text);
}

/// Whether a value is not said without its key where there are several: a number or a truth value.
bool needs_key(Yaml const& value) {
  static std::set<std::string> const bare{"", "none", "null"};
  return value.kind != Yaml::Kind::map && (is_truth(value) || bare.contains(value.text) || parse_real(value.text));
}

constexpr std::string_view between_values = " · ";

/// The value alone if an arm changes one key, `rotary`, but for truth values, `gate=true`; else all values, `sparsemax · heads=2`.
std::string name_of(std::vector<Assignment> const& changes) {
  if (changes.size() == 1 && !is_truth(changes.front().value)) return cut_label(label_of(changes.front().value));
  std::string name;
  for (auto const& [key, value] : changes) {
    if (!name.empty()) name += between_values;
    name += (needs_key(value) ? last_word(key) + "=" : "") + label_of(value);
  }
  return cut_label(std::move(name));
}

}  // namespace

std::string folder_label(std::string name) {
  for (std::size_t at = 0; (at = name.find(between_values, at)) != name.npos; ++at) name.replace(at, between_values.size(), ",");
  return name;
}

namespace {

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

}  // namespace

void limit(Place const& place, std::string const& what, double count, double most) {
  if (count > most) throw ConfigError(place, fmt::format("{} {}; at most {} are allowed", count, what, most));
}

namespace {

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

}  // namespace

std::vector<Assignment> assignments_of(Yaml const& node, std::string const& section) {
  if (node.kind != Yaml::Kind::map) refuse(node, section, "keys of the base with their values");
  std::vector<Assignment> changes;
  for (auto const& entry : node.entries) changes.push_back({entry.key, entry.value});
  return changes;
}

namespace {

bool agrees(Arm const& arm, std::vector<Assignment> const& wanted) {
  return std::ranges::all_of(wanted, [&](Assignment const& want) {
    return std::ranges::any_of(arm.changes,
                               [&](Assignment const& has) { return has.key == want.key && emit_line(has.value) == emit_line(want.value); });
  });
}

}  // namespace

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

}  // namespace heed
