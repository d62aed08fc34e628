#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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

/// A kind that is chosen by its name and no more than its settings: `using HeadKind = KindOf<HeadSettings>`.
template <class S>
struct KindOf {
  std::string name, help;
  std::function<std::shared_ptr<S>()> settings;
};

/// A choice among the declared kinds of a registry, or those for which `takes` is true; `chosen`, unless it is empty, is chosen.
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

/// A list of sections of one kind (`groups: [{match: …}, {match: …}]`), in order; ListOf holds them.
struct SettingsList {
  virtual ~SettingsList() = default;
  virtual std::size_t size() const = 0;
  virtual Settings& at(std::size_t i) = 0;
  virtual void clear() = 0;
  /// One more at the end, with its defaults.
  virtual Settings& add() = 0;
  /// A section with its defaults that is in no list: what a page of help describes.
  virtual std::unique_ptr<Settings> one() const = 0;
};

/// A field of a settings struct: where its value lives, and what a reader, a writer, a checker or a page of help must know of it.
/// The default is what the struct holds before anything is read.
struct Field {
  using Target = std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<double>*, std::vector<std::string>*,
                              std::vector<std::vector<double>>*, std::optional<double>*, std::optional<std::int64_t>*,
                              std::optional<std::string>*, Settings*, Choice*, SettingsList*>;
  std::string name;
  Target target;
  std::string help{};
  double least = -std::numeric_limits<double>::infinity();  ///< allowed range of numbers, ends included unless `open`
  double greatest = std::numeric_limits<double>::infinity();
  bool open = false;                 ///< the ends of the range are not allowed
  std::vector<std::string> words{};  ///< if not empty: the strings that are allowed
  bool required = false;
  std::map<std::string, std::string> others{};  ///< of words that are not allowed, what to write instead
};

/// Settings are plain structs that describe their own fields, once: parsing, defaults, range checks, did-you-mean, `heed check`,
/// `heed list` and the resolved configuration all follow from that. `experiments` fills them from YAML; nothing here knows of YAML.
struct Settings {
  virtual ~Settings() = default;
  virtual std::vector<Field> fields() = 0;
  /// Checks across fields (width divisible by heads, …): a message that begins with the field's name and ": ", or nothing.
  virtual std::optional<std::string> contradiction() { return std::nullopt; }
  /// A section that may also be written as one word or a number (`attention: local-p`, `clip: 1.0`): turns it into fields.
  /// False if this section has no such short form or does not know the word.
  virtual bool from_word(std::string_view) { return false; }
  /// The words that from_word knows, for messages.
  virtual std::vector<std::string> short_words() { return {}; }
};

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

}  // namespace heed
