#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "autograd/registry.hpp"

namespace heed {

struct Settings;

/// A section whose `kind:` key chooses which settings it holds (`data: {kind: text, …}`, `schedule: {kind: cosine, …}`).
struct Choice {
  struct Option {
    std::string name;
    std::string help;
    std::function<std::shared_ptr<Settings>()> make;
  };
  std::vector<Option> options;
  std::string kind;                    ///< the chosen option's name; empty until chosen
  std::shared_ptr<Settings> settings;  ///< the chosen option's settings
};

/// A kind that consists of a name and settings: `using HeadKind = KindOf<HeadSettings>`.
template <class S>
struct KindOf {
  std::string name, help;
  std::function<std::shared_ptr<S>()> settings;
};

/// The factory of a kind: a T from what it is given, or from nothing if T wants nothing.
template <class T>
inline constexpr auto makes = [](auto const&... given) {
  if constexpr (std::is_constructible_v<T, decltype(given)...>)
    return std::make_unique<T>(given...);
  else
    return std::make_unique<T>();
};

/// A choice among the declared kinds of a registry, or those for which `takes` is true; `chosen` is the default, unless empty.
template <class Kind>
Choice choice_of(std::string const& chosen = "", std::function<bool(Kind const&)> const& takes = nullptr) {
  Choice choice;
  for (Kind const& kind : Registry<Kind>::all())
    if (!takes || takes(kind)) choice.options.push_back({kind.name, kind.help, kind.settings});
  if (chosen.empty()) return choice;
  choice.kind = chosen;
  choice.settings = Registry<Kind>::at(chosen, "there is no kind").settings();
  return choice;
}

/// A list of sections of one type (`groups: [{match: …}, {match: …}]`), in order; implemented by ListOf.
struct SettingsList {
  virtual ~SettingsList() = default;
  virtual std::size_t size() const = 0;
  virtual Settings& at(std::size_t i) = 0;
  virtual void clear() = 0;
  /// Appends a section with its defaults.
  virtual Settings& add() = 0;
  /// A section with its defaults outside any list, for help pages.
  virtual std::unique_ptr<Settings> one() const = 0;
};

/// Sections of one type under names that a document chooses (`types: {local: {…}}`), in order; implemented by MapOf.
struct SettingsMap {
  std::vector<std::string> words = {};  ///< that may stand for the whole map
  std::string word = {};                ///< the one that does

  virtual ~SettingsMap() = default;
  virtual std::vector<std::string> names() const = 0;
  /// Throws Error for an unknown name.
  virtual Settings& at(std::string const& name) = 0;
  virtual void clear() = 0;
  /// A new section with its defaults.
  virtual Settings& add(std::string const& name) = 0;
  /// A section with its defaults outside any map, for help pages.
  virtual std::unique_ptr<Settings> one() const = 0;
};

/// A field of a settings struct: where its value is stored, and what parsing, writing, checking and help need to know. The default is the
/// struct's initial value. Written as field(&heads, "heads", "number of heads").in(1, 64).
struct Field {
  using Target = std::variant<bool*, Index*, double*, std::string*, std::vector<double>*, std::vector<std::string>*,
                              std::vector<std::vector<double>>*, std::optional<double>*, std::optional<Index>*, std::optional<std::string>*,
                              Settings*, Choice*, SettingsList*, SettingsMap*>;
  std::string name;
  Target target;
  std::string help{};
  double min = -std::numeric_limits<double>::infinity();  ///< allowed range of numbers, ends included unless `open`
  double max = std::numeric_limits<double>::infinity();
  bool open = false;                 ///< excludes the ends of the range
  bool whole = false;                ///< of a list of numbers: integers alone
  bool wants_some = false;           ///< of a list: it is not empty
  std::vector<std::string> words{};  ///< if not empty: the strings that are allowed
  bool required = false;
  std::map<std::string, std::string> others{};  ///< suggestions for words that are not allowed

  // Each sets what its name says and returns the field.
  Field&& in(double low, double high) && { return min = low, max = high, std::move(*this); }
  Field&& at_least(double low) && { return min = low, std::move(*this); }
  Field&& above(double low) && { return min = low, open = true, std::move(*this); }                    ///< without the end
  Field&& between(double low, double high) && { return open = true, std::move(*this).in(low, high); }  ///< without the ends
  Field&& integers() && { return whole = true, std::move(*this); }
  Field&& filled() && { return wants_some = true, std::move(*this); }
  Field&& one_of(std::vector<std::string> allowed) && { return words = std::move(allowed), std::move(*this); }
  Field&& mandatory() && { return required = true, std::move(*this); }
  Field&& suggesting(std::map<std::string, std::string> instead) && { return others = std::move(instead), std::move(*this); }
};

/// A field that is stored at `target`, any value of whose type is allowed.
inline Field field(Field::Target target, std::string name, std::string help = "") {
  return {.name = std::move(name), .target = target, .help = std::move(help)};
}

/// The fields and, after them, more.
inline std::vector<Field> extended(std::vector<Field> fields, std::vector<Field> const& more) {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

/// Settings are plain structs that describe their fields once: parsing, defaults, range checks, did-you-mean, `heed check`, `heed list` and
/// the resolved configuration are derived from it. `experiments` fills them from YAML; nothing here depends on YAML.
struct Settings {
  virtual ~Settings() = default;
  virtual std::vector<Field> fields() { return {}; }
  /// Checks across fields (width divisible by heads, …): a message that begins with the field's name and ": ", or nothing.
  virtual std::optional<std::string> contradiction() { return std::nullopt; }
  /// Short form of a section as one word or number (`attention: local-p`, `clip: 1.0`): sets the fields. False if there is no short form or
  /// the word is unknown.
  virtual bool from_word(std::string_view) { return false; }
  /// The words that from_word accepts, for messages.
  virtual std::vector<std::string> short_words() { return {}; }
  /// Whether a document may define further words.
  virtual bool has_own_words() const { return false; }
  /// The word that stands for these settings as they are, and is written instead of them; "": none does.
  virtual std::string word() { return ""; }
};

/// Of two lists of the same fields, the names of those whose values differ; sections are compared field by field.
inline std::vector<std::string> differing_fields(std::vector<Field> const& a, std::vector<Field> const& b) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto const differs = [&](auto* value) {
      using T = std::remove_pointer_t<decltype(value)>;
      T* const other = std::get<T*>(b[i].target);
      if constexpr (std::is_same_v<T, Settings>)
        return !differing_fields(value->fields(), other->fields()).empty();
      else if constexpr (std::equality_comparable<T>)
        return *value != *other;
      else
        return false;
    };
    if (std::visit(differs, a[i].target)) names.push_back(a[i].name);
  }
  return names;
}

/// The chosen option's settings. Throws Error, "WHAT: no kind is chosen".
template <class S>
S const& chosen_settings(Choice const& choice, std::string const& what) {
  if (auto const* const settings = dynamic_cast<S const*>(choice.settings.get())) return *settings;
  throw Error(what + ": no kind is chosen");
}

/// A list of sections of type T.
template <class T>
struct ListOf : SettingsList {
  std::vector<T> items;

  std::size_t size() const override { return items.size(); }
  Settings& at(std::size_t i) override { return items.at(i); }
  void clear() override { items.clear(); }
  Settings& add() override { return items.emplace_back(); }
  std::unique_ptr<Settings> one() const override { return std::make_unique<T>(); }
};

/// Named sections of type T.
template <class T>
struct MapOf : SettingsMap {
  std::vector<std::pair<std::string, T>> items;

  T const* find(std::string_view name) const {
    for (auto const& [own, section] : items)
      if (own == name) return &section;
    return nullptr;
  }
  std::vector<std::string> names() const override { return mapped(items, &std::pair<std::string, T>::first); }
  Settings& at(std::string const& name) override {
    for (auto& [own, section] : items)
      if (own == name) return section;
    throw Error("there is no section '" + name + "'");
  }
  void clear() override { items.clear(); }
  Settings& add(std::string const& name) override { return items.emplace_back(name, T()).second; }
  std::unique_ptr<Settings> one() const override { return std::make_unique<T>(); }
};

}  // namespace heed
