#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/error.hpp"

namespace heed {

/// Where something was written: a file with line and column (from one; columns count characters), or an argument, without lines.
struct Location {
  std::shared_ptr<std::string const> source;  ///< "tiny.yaml", "argument 'seed=3'"
  int line = 0;                               ///< 0: the source as a whole
  int column = 0;
};

/// "tiny.yaml:3:7", or the source alone.
std::string to_string(Location const& location);

/// A configuration or command line that is refused: the message begins with the location.
struct ConfigError : Error {
  using Error::Error;
  ConfigError(Location const& location, std::string const& message) : Error(to_string(location) + ": " + message) {}
  /// About an argument of the command line, or a file or folder as a whole.
  ConfigError(std::string const& what, std::string const& message) : Error(what + ": " + message) {}
};

/// A value of a YAML document and where it was written. Scalars stay text: `no` is a string for a name, and false for a switch.
struct Yaml {
  enum class NodeKind { null, scalar, list, map };
  struct Entry;

  NodeKind kind = NodeKind::null;
  std::string text;            ///< a scalar's text; a map may have one too: the short form that its entries modify
  bool quoted = false;         ///< the scalar was written in quotes or as a block
  std::vector<Yaml> items;     ///< a list's
  std::vector<Entry> entries;  ///< a map's, in the order of the document; keys are unique
  Location location;

  static Yaml scalar(std::string text, bool quoted = false);
  static Yaml map(std::vector<Entry> entries);
  /// The entry of a map, or null.
  Entry const* entry(std::string_view key) const;
  /// The value under a key of a map, or the item of a list at a number from 0; null if absent.
  Yaml const* inside(std::string_view name) const;
  /// The value at a dotted path of keys ("train.optimizer.lr"), or null.
  Yaml const* find(std::string_view path) const;
};

struct Yaml::Entry {
  std::string key;
  Location location;  ///< of the key
  Yaml value;
};

/// Parses a text; null if it is empty. `source` names it in messages; `lines`: whether its lines and columns are worth reporting. Aliases
/// become copies, and the merge key of YAML 1.1 (`<<: *base`, `<<: [*a, *b]`) the entries of the maps it names, unless the map itself or an
/// earlier one has the key. Throws ConfigError for bad syntax, bytes that are not UTF-8, control characters, tabs as indentation, duplicate
/// keys, keys that are not words or longer than 250 bytes, tags, a second document, more than 64 levels or a million values.
Yaml parse_yaml(std::string_view text, std::string const& source, bool lines = true);

/// parse_yaml of a file of at most 16 MB. Throws ConfigError if there is no such file, FileError if it cannot be read.
Yaml load_yaml(std::string const& path);

/// The value as YAML text that reads back as the same value here and in other readers (PyYAML): maps that fit into 100 columns as `{…}`,
/// others as blocks; lists as `[…]`; strings quoted only where they would be read as another type.
std::string emit(Yaml const& value);

/// The value on one line: `{kind: sgd, lr: 0.1}`, `[1, 2]`, `"no"`.
std::string emit_line(Yaml const& value);

/// "section.key", or the key alone at the top.
std::string dotted(std::string_view section, std::string_view key);

/// A text for messages: in single quotes, on one line, shortened; invisible characters as "\x0a" and "\u202e".
std::string shown(std::string_view text);

/// "; did you mean 'base.yaml'?" of a file that is not there, from those in its folder; "" if none is near.
std::string nearest_file(std::filesystem::path const& path);

}  // namespace heed
