#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/config/yaml.hpp"
#include "nn/settings.hpp"

namespace heed {

/// A configuration as written: a file, changed by assignments of the command line or of an ablation. Every value remembers its location, so
/// that later errors can name file, line and column, or the argument.
struct Document {
  std::filesystem::path file;  ///< empty if not read from a file
  Yaml root;                   ///< a map
};

/// Reads a file. Throws ConfigError if it cannot be read, is not valid YAML (see parse_yaml), or is not a map.
Document load(std::filesystem::path const& file);

/// Reads a text; `source` names it in messages.
Document parse(std::string_view text, std::string const& source = "configuration");

/// Applies an argument `key.path=value`, whose value is YAML. Replaces the key's whole value (keys of a section that are no longer set are
/// named on standard error), and creates missing sections on the way; a section written as a word (`attention: local-p`) keeps the word's
/// meaning except for what is assigned inside it. Throws ConfigError that names the argument; fill() checks whether the key exists.
void assign(Document& document, std::string_view argument);

/// The same for a parsed value (an ablation's arm).
void assign(Document& document, std::string_view key, Yaml value);

/// Fills the settings from the document, by their own description. Keys that are absent keep their defaults.
///
///  - A Settings is a section; a word or number in its place goes through from_word. A Choice is a section with `kind:`, or the kind alone
///    as a word; without `kind:`, the Choice's own `kind` if it has one. A missing or empty Choice that needs no value stays unset.
///  - Integers are written in digits (no `1e3`, no leading zeros), reals as `1`, `.5`, `1e-3`; both finite and without quotes. Truth values
///    are true/false, yes/no, on/off. Any scalar is a string, as it was typed (`no` is "no"). Optional values may be `null`, optional
///    numbers also `none`.
///  - `${key.path}` inside the string `name` of the outermost settings is replaced by that key's value.
///
/// Throws ConfigError for keys that are unknown or misplaced, missing keys and kinds, wrong types, values out of range and
/// contradictions: location, dotted key, what is wanted, what was found, the nearest valid name.
void fill(Document const& document, Settings& settings);

/// Where the value of a dotted key was written, or the nearest section around it; items of lists are numbers, "groups.0".
Location location_of(Document const& document, std::string_view key);

/// The current settings, defaults included, in the order of their description. Reals always have a point and read back exactly.
Yaml tree(Settings& settings);

/// The resolved configuration as YAML text: emit(tree(settings)). Reading it back gives equal settings and the same text.
std::string emit(Settings& settings);

/// Quotes words of a document that heed reads as text, so that other YAML readers do not take `no` or `on` for a truth value; numbers and
/// switches stay unquoted, with the point that YAML 1.1 needs in `1.e-3`. `key`: the value's dotted key; "" for a map of keys.
void quote_texts(Yaml& value, std::string const& key, Settings& settings);

/// Whether a dotted key is this one or inside this section.
inline bool is_within(std::string const& key, std::string const& section) { return key == section || key.starts_with(section + "."); }

/// Dotted keys and their values on one line each.
std::vector<std::pair<std::string, std::string>> flatten(Yaml const& root);

/// The dotted keys that only one of two configurations has or whose values differ, in order of appearance.
std::vector<std::string> differing_keys(Yaml const& a, Yaml const& b);

/// A page of help: a row per key with type and range, default and meaning; a choice's kinds in turn. `section`: the keys of one alone.
std::string describe(Settings& settings, std::size_t indent = 0, std::string const& section = "");

/// The file that a path in a configuration names: absolute, else relative to the configuration's folder, else to the data folder (empty:
/// none). Throws ConfigError naming the paths tried if there is no such file.
std::filesystem::path resolve_path(std::string const& text, std::filesystem::path const& config_folder,
                                   std::filesystem::path const& data_folder);

}  // namespace heed
