#include "experiments/config/config.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/build_info.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/scalar.hpp"
#include "nn/files/input_file.hpp"

namespace heed {
namespace {

constexpr char const* space_missing = "; is a space missing after ':'?";

Choice::Option const* option(Choice const& choice, std::string_view kind) {
  auto const found = std::ranges::find(choice.options, kind, &Choice::Option::name);
  return found == choice.options.end() ? nullptr : &*found;
}

/// Every key that a document may use, with its section; of a choice, the keys of the kind it names, or of all kinds if it names none.
struct Known {
  std::string section, name;
};

void known_keys(Settings& settings, Yaml const* node, std::string const& section, std::vector<Known>& known) {
  if (std::count(section.begin(), section.end(), '.') > 4) return;  // settings that contain themselves
  for (auto const& field : settings.fields()) {
    known.push_back({section, field.name});
    Yaml const* const inner = node ? node->inside(field.name) : nullptr;
    std::string const path = dotted(section, field.name);
    if (auto* const sub = std::get_if<Settings*>(&field.target)) known_keys(**sub, inner, path, known);
    if (auto* const list = std::get_if<SettingsList*>(&field.target)) known_keys(*(*list)->one(), nullptr, path, known);
    if (auto* const map = std::get_if<SettingsMap*>(&field.target))
      for (auto const& entry : inner ? inner->entries : std::vector<Yaml::Entry>())
        known_keys(*(*map)->one(), nullptr, dotted(path, entry.key), known);
    if (auto* const choice = std::get_if<Choice*>(&field.target)) {
      known.push_back({path, "kind"});
      Yaml const* const named = inner ? inner->inside("kind") : nullptr;
      auto const* const chosen = option(**choice, named ? named->text : inner ? inner->text : "");
      for (auto const& o : (*choice)->options)
        if (!chosen || chosen == &o) known_keys(*o.make(), inner, path, known);
    }
  }
}

/// The value at a dotted key, or the innermost section around it that is there.
Yaml const& nearest_to(Yaml const& root, std::string_view key) {
  auto const dot = key.find('.');
  auto const* const inner = key.empty() ? nullptr : root.inside(key.substr(0, dot));
  return inner ? nearest_to(*inner, dot == key.npos ? "" : key.substr(dot + 1)) : root;
}

/// The outermost value of a document, which is a map.
Yaml keys_of(Yaml root, std::string const& source) {
  if (root.kind == Yaml::NodeKind::null) throw ConfigError(source + ":1:1: the file is empty; wants keys (key: value)");
  if (root.kind != Yaml::NodeKind::map)
    throw ConfigError(root.location, fmt::format("wants keys (key: value), found {}{}", found(root),
                                                 root.text.find(':') == std::string::npos ? "" : space_missing));
  return root;
}

class Reader {
 public:
  Reader(Document const& document, Settings& settings) : document_(document), settings_(settings) {}

  /// Reads a section; `choice` if its kind chose these settings.
  void section(Settings& settings, Yaml const& node, std::string const& path, Choice const* choice) {
    if (node.kind == Yaml::NodeKind::list) refuse(node, path, "a section (key: value)");
    bool const word = (node.kind == Yaml::NodeKind::scalar || !node.text.empty()) && !(choice && option(*choice, node.text));
    if (word) short_form(settings, node, path, choice);
    auto const fields = settings.fields();
    for (auto const& entry : node.entries) {
      bool const kind = choice && entry.key == "kind";
      if (!kind && std::ranges::count(fields, entry.key, &Field::name) == 0) unknown(settings, node, entry, path, choice);
    }
    for (auto const& field : fields) {
      if (auto const* const value = node.inside(field.name))
        read_field(field, *value, dotted(path, field.name));
      else if (!word)
        absent(field, node, path);
    }
    for (auto const& field : fields) {
      auto* const* const list = std::get_if<std::vector<double>*>(&field.target);
      auto* const* const words = std::get_if<std::vector<std::string>*>(&field.target);
      if (field.wants_some && (list ? (*list)->empty() : words && (*words)->empty())) contradict(field.name + ": is empty", node, path);
      if (!list || !field.whole) continue;
      for (double const value : **list)
        if (value != std::trunc(value)) contradict(fmt::format("{}: {} is not an integer", field.name, value), node, path);
    }
    if (auto const contradiction = settings.contradiction()) contradict(*contradiction, node, path);
  }

 private:
  void read_field(Field const& field, Yaml const& node, std::string const& path) {
    if (auto* const* const settings = std::get_if<Settings*>(&field.target))
      section(**settings, node, path, nullptr);
    else if (auto* const* const choice = std::get_if<Choice*>(&field.target))
      choose(**choice, field.required, node, path);
    else if (auto* const* const sections = std::get_if<SettingsList*>(&field.target))
      list(**sections, node, path);
    else if (auto* const* const named = std::get_if<SettingsMap*>(&field.target))
      map(**named, node, path);
    else if (auto const wrong = read_value(node, field))
      refuse(wrong->node, path + wrong->where, wanted(field, !wrong->where.empty()), wrong->hint);
  }

  void list(SettingsList& target, Yaml const& node, std::string const& path) {
    if (node.kind != Yaml::NodeKind::list)
      refuse(node, path, "a list of sections", node.kind == Yaml::NodeKind::map ? fmt::format(" (write [{}])", emit_line(node)) : "");
    target.clear();
    for (std::size_t i = 0; i < node.items.size(); ++i) section(target.add(), node.items[i], dotted(path, std::to_string(i)), nullptr);
  }

  void map(SettingsMap& target, Yaml const& node, std::string const& path) {
    target.clear();
    target.word.clear();
    if (node.kind == Yaml::NodeKind::scalar && std::ranges::find(target.words, node.text) != target.words.end()) {
      target.word = node.text;
      return;
    }
    if (node.kind == Yaml::NodeKind::list || node.kind == Yaml::NodeKind::scalar)
      refuse(node, path,
             "sections by name (name: {key: value})" + (target.words.empty() ? "" : fmt::format(" or {}", fmt::join(target.words, ", "))),
             did_you_mean(node.text, target.words));
    for (auto const& entry : node.entries) section(target.add(entry.key), entry.value, dotted(path, entry.key), nullptr);
  }

  void absent(Field const& field, Yaml const& parent, std::string const& section_path) {
    std::string const path = dotted(section_path, field.name);
    Yaml const nothing{Yaml::NodeKind::null, "", false, {}, {}, parent.location};
    if (std::holds_alternative<Settings*>(field.target) || std::holds_alternative<Choice*>(field.target))
      read_field(field, nothing, path);
    else if (field.required)
      throw ConfigError(parent.location, fmt::format("missing key '{}' ({}): {}", path, wanted(field), field.help));
  }

  /// A hint for an unknown kind.
  static std::string about_kind(std::string const& kind, Choice const& choice) {
    auto const nearest = did_you_mean(kind, names_of(choice.options));
    return nearest.empty() && !kind.empty() ? built_without() : nearest;
  }

  void choose(Choice& choice, bool required, Yaml const& node, std::string const& path) {
    std::string const list = fmt::format("{}", fmt::join(names_of(choice.options), ", "));
    if (node.kind == Yaml::NodeKind::list) refuse(node, path, "a section with 'kind: …'");
    Yaml const* const given = node.inside("kind");
    std::string const kind = given ? given->text : option(choice, node.text) ? node.text : choice.kind;
    if (kind.empty() && !given) {
      if (node.kind == Yaml::NodeKind::scalar || !node.text.empty()) refuse(node, path, "one of " + list, about_kind(node.text, choice));
      if (node.kind != Yaml::NodeKind::map && !required) return;
      auto const glued = std::any_of(node.entries.begin(), node.entries.end(), [](auto const& e) { return e.key.starts_with("kind:"); });
      throw ConfigError(node.location,
                        fmt::format("missing key '{}' (one of {}){}", dotted(path, "kind"), list, glued ? space_missing : ""));
    }
    auto const* const chosen = option(choice, kind);
    if (!chosen) refuse(given ? *given : node, dotted(path, "kind"), "one of " + list, about_kind(kind, choice));
    if (choice.kind != kind || !choice.settings) choice.settings = chosen->make();
    choice.kind = kind;
    section(*choice.settings, node, path, &choice);
  }

  void short_form(Settings& settings, Yaml const& node, std::string const& path, Choice const* choice) {
    if (!settings.from_word(node.text)) {
      auto words = settings.short_words();
      if (choice)
        for (auto const& kind : names_of(choice->options)) words.push_back(kind);
      auto const either = words.empty() ? "" : fmt::format(" or one of {}", fmt::join(words, ", "));
      auto hint = did_you_mean(node.text, words);
      for (auto const& field : settings.fields())
        if (auto const word = nearest(node.text, field.words); hint.empty() && !word.empty())
          hint = fmt::format("; did you mean '{{{}: {}}}'?", field.name, word);
      refuse(node, path, "a section (key: value)" + either, hint);
    }
    for (auto const& field : settings.fields())
      if (read_value(value_of(field), field)) refuse(node, dotted(path, field.name), wanted(field));
  }

  [[noreturn]] static void refuse(Yaml const& node, std::string const& path, std::string const& wanted, std::string const& hint = "") {
    throw ConfigError(node.location, fmt::format("{} wants {}, found {}{}", shown(path), wanted, found(node), hint));
  }

  [[noreturn]] void unknown(Settings& settings, Yaml const& node, Yaml::Entry const& entry, std::string const& path, Choice const* choice) {
    auto names = names_of(settings.fields());
    if (choice) names.insert(names.begin(), "kind");
    std::string advice;
    if (choice) advice = other_kinds(*choice, node, entry);
    if (advice.empty()) advice = elsewhere(entry);
    if (advice.empty()) advice = did_you_mean(entry.key, names);
    if (advice.empty()) advice = did_you_mean_elsewhere(entry);
    if (advice.empty() && entry.key.find(':') != std::string::npos) advice = space_missing;
    for (std::string_view const of_gpus : {"gpu", "gpus", "cuda", "device", "devices"})
      if (entry.key == of_gpus) advice = "; heed runs on CPUs only";
    throw ConfigError(entry.location, fmt::format("unknown key {}{} (allowed: {}){}", shown(dotted(path, entry.key)), advice,
                                                  fmt::join(names, ", "), advice.empty() ? built_without() : ""));
  }

  /// A key that belongs to another kind of this section.
  static std::string other_kinds(Choice const& choice, Yaml const& node, Yaml::Entry const& entry) {
    std::vector<std::string> owners;
    for (auto const& o : choice.options)
      if (std::ranges::count(o.make()->fields(), entry.key, &Field::name) > 0) owners.push_back(o.name);
    if (owners.empty()) return "";
    auto const* const kind = node.inside("kind");
    bool const elsewhere = kind && kind->location.source != entry.location.source;
    return fmt::format("; kind '{}'{} does not know it, {} {}", choice.kind, elsewhere ? " (" + to_string(kind->location) + ")" : "",
                       fmt::join(owners, ", "), owners.size() == 1 ? "does" : "do");
  }

  std::vector<Known> known() const {
    std::vector<Known> all;
    known_keys(settings_, &document_.root, "", all);
    return all;
  }

  /// A key that is valid in another section, or whose sections are written into one word.
  std::string elsewhere(Yaml::Entry const& entry) const {
    std::vector<std::string> homes;
    for (auto const& [section, key] : known()) {
      if (dotted(section, key) == entry.key) return fmt::format("; in a file it is written nested, '{}: {{{}: …}}'", section, key);
      std::string const home = section.empty() ? "at the top" : "under '" + section + "'";
      if (key == entry.key && key != "kind" && std::find(homes.begin(), homes.end(), home) == homes.end()) homes.push_back(home);
    }
    if (homes.size() > 3) homes.resize(3);
    return homes.empty() ? "" : fmt::format("; it belongs {}", fmt::join(homes, " or "));
  }

  std::string did_you_mean_elsewhere(Yaml::Entry const& entry) const {
    auto const all = known();
    std::string const name = nearest(entry.key, names_of(all));
    auto const home = std::ranges::find(all, name, &Known::name);
    return name.empty() ? "" : fmt::format("; did you mean '{}'?", dotted(home->section, home->name));
  }

  /// Reported at the first key that the contradiction names, or the nearest section around it that was written.
  [[noreturn]] static void contradict(std::string const& contradiction, Yaml const& node, std::string const& path) {
    auto const key = std::string_view(contradiction).substr(0, contradiction.find(':'));
    throw ConfigError(nearest_to(node, key).location, dotted(path, contradiction));
  }

  Document const& document_;
  Settings& settings_;
};

/// Replaces every `${key.path}` in a text by that key's value. Throws ConfigError at `location` for a key that is unknown or no scalar.
std::string substitute(std::string_view text, Settings& settings, Location const& location) {
  std::string result;
  Yaml const values = tree(settings);
  while (true) {
    auto const dollar = text.find("${");
    result += text.substr(0, dollar);
    if (dollar == text.npos) return result;
    auto const close = text.find('}', dollar);
    if (close == text.npos) throw ConfigError(location, fmt::format("'${{' without '}}' in {}", shown(text)));
    std::string const key(text.substr(dollar + 2, close - dollar - 2));
    Yaml const* const value = values.find(key);
    std::string const written = shown("${" + key + "}");
    if (!value) {
      auto const names = mapped(flatten(values), [](auto const& each) { return each.first; });
      throw ConfigError(location, fmt::format("unknown key {}{}", written, did_you_mean(key, names)));
    }
    if (value->text.find("${") != std::string::npos) throw ConfigError(location, fmt::format("{} holds a '${{' itself", written));
    if (value->kind != Yaml::NodeKind::scalar)
      throw ConfigError(location, fmt::format("{} wants a key with a single value, found {}", written, found(*value)));
    result += value->text;
    text.remove_prefix(close + 1);
  }
}

}  // namespace

Document load(std::filesystem::path const& file) { return {file, keys_of(load_yaml(file.string()), file.string())}; }

Document parse(std::string_view text, std::string const& source) { return {{}, keys_of(parse_yaml(text, source), source)}; }

void assign(Document& document, std::string_view argument) {
  std::string const source = fmt::format("argument {}", shown(argument));
  auto const equals = argument.find('=');
  if (equals == argument.npos || equals == 0) throw ConfigError(source + ": wants key.path=value");
  auto const key = argument.substr(0, equals);
  Yaml value = parse_yaml(argument.substr(equals + 1), source, false);
  if (auto const* const before = document.root.find(key);
      before && value.kind == Yaml::NodeKind::map && !value.find("kind")) {  // another kind has other keys
    std::vector<std::string> gone;
    for (auto const& entry : before->entries)
      if (!value.entry(entry.key)) gone.push_back(dotted(key, entry.key));
    if (!gone.empty())
      fmt::print(stderr, "{} replaces the whole section; no longer set: {} ({}.KEY=VALUE changes one key)\n", source, fmt::join(gone, ", "),
                 key);
  }
  assign(document, key, std::move(value));
}

void assign(Document& document, std::string_view key, Yaml value) {
  Location const location = value.location;
  if (std::count(key.begin(), key.end(), '.') > 60) throw ConfigError(location, "more than 60 levels");
  Yaml* node = &document.root;
  for (std::size_t begin = 0; begin <= key.size();) {
    // A key that is written with its dots, as an ablation's `set: {train.steps: 100}` has them, stands for itself.
    bool const whole = std::ranges::any_of(node->entries, [&](auto const& e) { return e.key == key.substr(begin); });
    std::size_t const end = whole ? key.size() : std::min(key.find('.', begin), key.size());
    std::string const name(key.substr(begin, end - begin));
    if (name.empty()) throw ConfigError(location, fmt::format("{} is no key: an empty name", shown(key)));
    if (node->kind == Yaml::NodeKind::list) {
      auto const number = parse_integer(name);
      std::string const list(key.substr(0, begin - 1));
      if (!number) throw ConfigError(location, fmt::format("{} is a list and has no keys", shown(list)));
      if (*number < 0 || *number >= std::ssize(node->items))
        throw ConfigError(location, fmt::format("{} has no item {}: there are {}, from 0 on", shown(list), name, node->items.size()));
      node = &at(node->items, *number);
      begin = end + 1;
      continue;
    }
    if (node->kind != Yaml::NodeKind::map) node->kind = Yaml::NodeKind::map;  // keeps the word of a short form
    auto entry = std::ranges::find(node->entries, name, &Yaml::Entry::key);
    if (entry == node->entries.end()) entry = node->entries.insert(entry, {name, location, Yaml{}});
    if (entry->value.kind == Yaml::NodeKind::null) entry->value.location = location;
    if (end == key.size()) entry->location = location;
    node = &entry->value;
    begin = end + 1;
  }
  *node = std::move(value);
}

void fill(Document const& document, Settings& settings) {
  Reader(document, settings).section(settings, document.root, "", nullptr);
  for (auto const& field : settings.fields()) {
    auto* const* const text = std::get_if<std::string*>(&field.target);
    if (field.name == "name" && text) **text = substitute(**text, settings, location_of(document, "name"));
  }
}

Location location_of(Document const& document, std::string_view key) { return nearest_to(document.root, key).location; }

std::filesystem::path resolve_path(std::string const& text, std::filesystem::path const& config_folder,
                                   std::filesystem::path const& data_folder) {
  auto const near_config = (config_folder / text).lexically_normal(), in_data = (data_folder / text).lexically_normal();
  if (is_there(near_config)) return near_config;
  if (std::filesystem::path(text).is_absolute()) throw ConfigError(text + ": no such file");
  if (data_folder.empty())
    throw ConfigError(fmt::format("{}: no such file as {} (beside the configuration), and there is no data folder: --data DIR names one",
                                  text, near_config.string()));
  if (is_there(in_data)) return in_data;
  throw ConfigError(fmt::format("{}: no such file, neither as {} (beside the configuration) nor as {} (in the data folder)", text,
                                near_config.string(), in_data.string()));
}

}  // namespace heed
