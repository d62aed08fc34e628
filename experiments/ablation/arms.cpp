#include "experiments/ablation/arms.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/random.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/scalar.hpp"
#include "experiments/config/table.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/report/grid.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace {

[[noreturn]] void refuse(Yaml const& node, std::string const& key, std::string const& wants) {
  throw ConfigError(node.location, fmt::format("{}: wants {}, found {}", key, wants, found(node)));
}

/// "deltanet×3+scaled": the words of a list, such as a pattern of layers; "" for a list of other values.
std::string label_of_words(Yaml const& list) {
  std::string label;
  for (std::size_t i = 0, next = 0; i < list.items.size(); i = next) {
    std::string const& word = list.items[i].text;
    if (word.empty() || parse_real(word)) return "";
    while (next < list.items.size() && list.items[next].text == word) ++next;
    label += (label.empty() ? "" : "+") + file_label(word) + (next - i > 1 ? fmt::format("×{}", next - i) : "");
  }
  return label;
}

/// A few words for a value, as they may stand in a folder's name: the word itself, or the values of a section one after the other.
std::string label_of_value(Yaml const& value) {
  if (auto words = label_of_words(value); !words.empty()) return words;
  std::string label = value.text;
  if (auto const at = label.find(".e-"); at != label.npos) label.erase(at, 1);  // 1.e-3 of a saved ablation.yaml was 1e-3
  for (auto const& entry : value.entries) label += (label.empty() ? "" : "-") + label_of_value(entry.value);
  for (auto const& item : value.items) label += (label.empty() ? "" : "-") + label_of_value(item);
  return file_label(label);
}

bool is_truth(Yaml const& value) {
  static std::set<std::string> const words{"true", "false", "yes", "no", "on", "off"};
  return value.kind == Yaml::NodeKind::scalar && words.contains(value.text);
}

/// Whether the name of an arm with several keys shows the key too: for a number or a truth value.
bool needs_key(Yaml const& value) {
  static std::set<std::string> const bare{"", "none", "null"};
  return value.kind != Yaml::NodeKind::map && (is_truth(value) || bare.contains(value.text) || parse_real(value.text));
}

constexpr std::string_view between_values = " · ";

/// The value alone if an arm changes one key, `rotary`, but for truth values, `gate=true`; else all values, `sparsemax · heads=2`.
std::string name_of(std::vector<Assignment> const& changes) {
  if (changes.size() == 1 && !is_truth(changes.front().value)) return cut_label(label_of_value(changes.front().value));
  std::string name;
  for (auto const& [key, location, value] : changes) {
    if (!name.empty()) name += between_values;
    name += (needs_key(value) ? last_word(key) + "=" : "") + label_of_value(value);
  }
  return cut_label(std::move(name));
}

/// `{key: [value, …], …}` as lists of assignments, one list a key.
std::vector<std::vector<Assignment>> axes_of(Yaml const& node, std::string const& section) {
  if (node.kind != Yaml::NodeKind::map) refuse(node, section, "keys of the base with lists of values");
  std::vector<std::vector<Assignment>> axes;
  for (auto const& entry : node.entries) {
    if (entry.value.kind != Yaml::NodeKind::list || entry.value.items.empty())
      refuse(entry.value, section + ": " + entry.key, "a list of values");
    axes.push_back(mapped(entry.value.items, [&](Yaml const& item) { return Assignment{entry.key, entry.location, item}; }));
  }
  return axes;
}

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
    for (auto const& before : all)
      for (auto const& assignment : axis) longer.push_back(joined_changes(before, {assignment}));
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
      throw ConfigError(axis.front().value.location, fmt::format("together: {} has {} values, but {} has {}: they move in step",
                                                                 axis.front().key, axis.size(), axes.front().front().key, rows.size()));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back(axis[i]);
  }
  return rows;
}

/// Whether an arm's values are written like these.
bool agrees(Arm const& arm, std::vector<Assignment> const& wanted) {
  return std::ranges::all_of(wanted, [&](Assignment const& want) {
    return std::ranges::any_of(arm.changes,
                               [&](Assignment const& has) { return has.key == want.key && emit_line(has.value) == emit_line(want.value); });
  });
}

/// Whether an arm sets these keys, or others in their sections, and has these values already: setting them changes nothing.
bool means(Document const& base, Arm const& arm, std::vector<Assignment> const& wanted) try {
  bool const sets = std::ranges::all_of(wanted, [&](Assignment const& want) {
    return std::ranges::any_of(arm.changes,
                               [&](Assignment const& has) { return is_within(has.key, want.key) || is_within(want.key, has.key); });
  });
  return sets && full_configuration(base, joined_changes(arm.changes, wanted)) == full_configuration(base, arm.changes);
} catch (ConfigError const&) {  // a value that its key cannot have
  return false;
}

/// Where an arm was written: at its own name, else at the first value that the other does not share.
Location location_beside(Arm const& arm, Arm const& other) {
  if (arm.location.source || arm.changes.empty()) return arm.location;
  for (auto const& [key, location, value] : arm.changes) {
    auto const same = std::ranges::find(other.changes, key, &Assignment::key);
    if (same == other.changes.end() || to_string(same->value.location) != to_string(value.location)) return value.location;
  }
  return arm.changes.front().value.location;
}

[[noreturn]] void refuse_twins(Arm const& first, Arm const& second, std::string const& words) {
  throw ConfigError(location_beside(second, first), fmt::format("{} (the other: {})", words, to_string(location_beside(first, second))));
}

/// The value at a share of {log: [a, b]}, {uniform: [a, b]} or a list; three digits are enough, and read well in names.
Yaml drawn(Yaml const& node, std::string const& key, double share) {
  if (node.kind == Yaml::NodeKind::list && !node.items.empty())
    return node.items[static_cast<std::size_t>(share * static_cast<double>(node.items.size()))];
  for (bool const log : {true, false}) {
    auto const* const range = node.inside(log ? "log" : "uniform");
    if (range == nullptr || node.entries.size() != 1 || range->items.size() != 2) continue;
    auto const low = parse_real(range->items[0].text), high = parse_real(range->items[1].text);
    if (!low || !high || *low >= *high || (log && *low <= 0)) continue;
    auto value = Yaml::scalar(fmt::format("{:#.3g}", log ? *low * std::pow(*high / *low, share) : *low + (*high - *low) * share));
    value.location = node.location;
    return value;
  }
  refuse(node, "tune: random: " + key, "{log: [a, b]} with 0 < a < b, {uniform: [a, b]} with a < b, or a list of values");
}

/// The points of `tune: {random: …, trials: n}`, always the same: (Bergstra and Bengio 2012).
std::vector<std::vector<Assignment>> random_points(Yaml const& node, Yaml const* trials) {
  if (node.kind != Yaml::NodeKind::map || node.entries.empty()) refuse(node, "tune: random", "keys with {log: [a, b]} or a list");
  auto const count = trials != nullptr && trials->kind == Yaml::NodeKind::scalar ? parse_integer(trials->text) : std::nullopt;
  if (!count || *count < 1 || static_cast<double>(*count) > max_arms)
    throw ConfigError(trials != nullptr ? trials->location : node.location,
                      "tune: random wants `trials`, how many points are drawn: trials: 12");
  std::vector<std::vector<Assignment>> points;
  std::set<std::string> seen;
  auto const wanted = static_cast<std::uint64_t>(*count);
  for (std::uint64_t draw = 0; points.size() < wanted; ++draw) {
    if (draw > 100 * wanted) throw ConfigError(node.location, fmt::format("tune: random has no {} different points", wanted));
    std::vector<Assignment> point;
    std::string text;
    for (auto const& entry : node.entries) {
      point.push_back({entry.key, {}, drawn(entry.value, entry.key, Stream(0, "random search").child(entry.key).uniform(draw))});
      text += emit_line(point.back().value) + " ";
    }
    if (seen.insert(text).second) points.push_back(std::move(point));
  }
  return points;
}

}  // namespace

Yaml const* value_at(Document const& document, std::string const& key) {
  auto const* const entry = document.root.entry(key);
  return entry != nullptr && entry->value.kind != Yaml::NodeKind::null ? &entry->value : nullptr;
}

std::string folder_label(std::string name) {
  replace_all(name, between_values, ",");
  return name;
}

void limit(Location const& location, std::string const& what, double count, double max_count) {
  if (count > max_count) throw ConfigError(location, fmt::format("{} {}; at most {} are allowed", count, what, max_count));
}

std::vector<Assignment> assignments_of(Yaml const& node, std::string const& section) {
  if (node.kind != Yaml::NodeKind::map) refuse(node, section, "keys of the base with their values");
  return node.entries;
}

std::string full_configuration(Document base, std::vector<Assignment> const& changes) {
  for (auto const& change : changes) assign(base, change.key, change.value);
  Experiment settings;
  fill(base, settings);
  settings.name.clear();
  return emit(settings);
}

void check_distinct(Document const& base, std::vector<Arm> const& arms, std::vector<Arm> const& points) {
  std::map<std::string, std::pair<Arm const*, Arm const*>> found;
  for (auto const& arm : arms) {
    for (auto const& point : points) {
      auto const hash = sha256(full_configuration(base, joined_changes(arm.changes, point.changes)));
      auto const [same, fresh] = found.emplace(hash, std::pair(&arm, &point));
      if (fresh) continue;
      auto const [other, other_point] = same->second;
      if (other == &arm)
        refuse_twins(*other_point, point,
                     fmt::format("tune: the points '{}' and '{}' are one configuration", other_point->name, point.name));
      auto const there =
          point.changes.empty() ? "" : fmt::format(" at the point '{}' of tune's grid, which sets what they differ in", point.name);
      refuse_twins(*other, arm, fmt::format("the arms '{}' and '{}' are one configuration{}", other->name, arm.name, there));
    }
  }
}

std::vector<Index> seeds_of(Yaml const& node, std::string const& key, Index first) {
  std::vector<Index> seeds;
  std::set<Index> seen;
  if (auto const count = node.kind == Yaml::NodeKind::scalar ? parse_integer(node.text) : std::nullopt;
      count && *count >= 1 && *count <= 10'000) {
    for (Index i = 0; i < *count; ++i) seeds.push_back(first + i);
    return seeds;
  }
  if (node.kind != Yaml::NodeKind::list || node.items.empty()) refuse(node, key, "how many, 1 … 10000, or a list of seeds");
  for (auto const& item : node.items) {
    auto const seed = item.kind == Yaml::NodeKind::scalar ? parse_integer(item.text) : std::nullopt;
    if (!seed || *seed < 0) refuse(item, key, "seeds, integers ≥ 0");
    if (!seen.insert(*seed).second) throw ConfigError(item.location, fmt::format("{}: {} is listed twice", key, *seed));
    seeds.push_back(*seed);
  }
  return seeds;
}

std::vector<Arm> arms_of(Document const& file, Document const& base) {
  std::vector<Arm> arms;
  Yaml const* const vary = value_at(file, "vary");
  Yaml const* const together = value_at(file, "together");
  if (vary != nullptr || together != nullptr) {
    auto const axes = vary != nullptr ? axes_of(*vary, "vary") : std::vector<std::vector<Assignment>>{};
    auto const steps = together != nullptr ? zipped(*together) : std::vector<std::vector<Assignment>>{{}};
    limit(vary != nullptr ? vary->location : together->location, "arms", combinations(axes) * static_cast<double>(steps.size()), max_arms);
    for (auto const& changes : product(axes))
      for (auto const& more : steps) {
        auto all = joined_changes(changes, more);
        arms.push_back({name_of(all), std::move(all)});
      }
  }
  if (Yaml const* const skip = value_at(file, "skip")) {
    if (skip->kind != Yaml::NodeKind::list) refuse(*skip, "skip", "a list of {key: value, …}");
    for (auto const& item : skip->items) {
      auto const unwanted = assignments_of(item, "skip");
      if (std::erase_if(arms, [&](Arm const& arm) { return agrees(arm, unwanted); }) == 0 &&
          std::erase_if(arms, [&](Arm const& arm) { return means(base, arm, unwanted); }) == 0)
        throw ConfigError(item.location, fmt::format("skip: no arm has {}", emit_line(item)));
    }
  }
  if (Yaml const* const add = value_at(file, "add")) {
    if (add->kind != Yaml::NodeKind::map) refuse(*add, "add", "names of arms with what they change: {name: {key: value}}");
    for (auto const& entry : add->entries) {
      check_arm_name(entry.location, entry.key);
      arms.push_back({entry.key, assignments_of(entry.value, "add: " + entry.key), entry.location});
    }
  }
  if (arms.empty()) throw ConfigError(file.root.location, "there is nothing to compare: give vary, together or add");
  limit(file.root.location, "arms", static_cast<double>(arms.size()), max_arms);
  std::map<std::string, Arm const*> names;
  for (auto const& arm : arms) {
    auto const [same, fresh] = names.emplace(arm.name, &arm);
    if (!fresh) refuse_twins(*same->second, arm, fmt::format("two arms would both be called '{}'", arm.name));
  }
  return arms;
}

std::size_t baseline_of(Document const& file, Document const& base, std::vector<Arm> const& arms) {
  Yaml const* const node = value_at(file, "baseline");
  if (node == nullptr) return 0;
  bool const word = node->kind == Yaml::NodeKind::scalar;
  auto const wanted = word ? std::vector<Assignment>{} : assignments_of(*node, "baseline");
  auto const is_written_so = [&](Arm const& arm) {
    if (!word) return agrees(arm, wanted);
    return arm.name == node->text || folder_label(arm.name) == node->text || arm.name == label_of_value(*node);
  };
  auto const means_so = [&](Arm const& arm) {
    if (!word) return means(base, arm, wanted);
    return arm.changes.size() == 1 && means(base, arm, {{arm.changes.front().key, {}, *node}});  // its one value
  };
  auto const those = [&](auto const& fits) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < arms.size(); ++i)
      if (fits(arms[i])) found.push_back(i);
    return found;
  };
  auto fitting = those(is_written_so);
  if (fitting.empty()) fitting = those(means_so);
  if (fitting.size() == 1) return fitting.front();
  auto const names = names_of(arms);
  throw ConfigError(node->location, fmt::format("baseline: {} fits {} arms, not one{} (there are {})", emit_line(*node), fitting.size(),
                                                did_you_mean(node->text, names), fmt::join(names, ", ")));
}

std::optional<Tuning> tuning_of(Document const& file, std::vector<Index> const& seeds) {
  Yaml const* const node = value_at(file, "tune");
  if (node == nullptr) return std::nullopt;
  if (node->kind != Yaml::NodeKind::map) refuse(*node, "tune", "{grid: {key: [values]}, seeds: 2}");
  std::vector<std::string> const known{"grid", "random", "trials", "seeds"};
  for (auto const& entry : node->entries)
    if (std::ranges::find(known, entry.key) == known.end())
      throw ConfigError(entry.location, fmt::format("tune: unknown key '{}'{}", entry.key, did_you_mean(entry.key, known)));
  auto const *const grid = node->entry("grid"), *const random = node->entry("random");
  if ((grid == nullptr) == (random == nullptr))
    throw ConfigError(node->location, "tune: wants one of `grid` and `random`: {grid: {train.optimizer.lr: [0.001, 0.003]}}");
  auto const axes = grid != nullptr ? axes_of(grid->value, "tune: grid") : std::vector<std::vector<Assignment>>{};
  limit(node->location, "points of the tuning grid", combinations(axes), max_arms);
  Tuning tuning;
  for (auto& changes : grid != nullptr ? product(axes) : random_points(random->value, node->inside("trials"))) {
    auto name = name_of(changes);
    tuning.points.push_back({std::move(name), std::move(changes)});
  }
  Index const free = std::max(first_tuning_seed, 1 + *std::ranges::max_element(seeds));
  auto const* const own = node->entry("seeds");
  tuning.seeds = own != nullptr ? seeds_of(own->value, "tune: seeds", free) : std::vector{free, free + 1};
  if (auto const seed = std::ranges::find_first_of(tuning.seeds, seeds); seed != tuning.seeds.end())
    throw ConfigError(node->location, fmt::format("tune: seed {} is also one of the comparison's; tuning needs seeds of its own", *seed));
  return tuning;
}

}  // namespace heed
