#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/error.hpp"

namespace heed {

/// Where something was written: a file with line and column (from one; columns count characters), or an argument, which has no lines.
struct Location {
  std::shared_ptr<std::string const> source;  ///< "tiny.yaml", "argument 'seed=3'"
  int line = 0;                               ///< 0: the source as a whole
  int column = 0;
};

/// "tiny.yaml:3:7", or the source alone.
std::string to_string(Location const& place);

/// A configuration or a command line that heed refuses: the message begins with the place.
struct ConfigError : Error {
  using Error::Error;
  ConfigError(Location const& place, std::string const& message) : Error(to_string(place) + ": " + message) {}
  /// Of an argument of the command line, or of a file or folder as a whole.
  ConfigError(std::string const& what, std::string const& message) : Error(what + ": " + message) {}
};

/// One value of a YAML document, with the place where it was written. Scalars stay text: what they mean is for the reader to say,
/// who knows what is wanted (`no` is a word for a name, false for a switch).
struct Yaml {
  enum class NodeKind { null, scalar, list, map };
  struct Entry;

  NodeKind kind = NodeKind::null;
  std::string text;            ///< a scalar's text; a map may have one too: the word whose short form its entries change
  bool quoted = false;         ///< the scalar was written in quotes or as a block
  std::vector<Yaml> items;     ///< a list's
  std::vector<Entry> entries;  ///< a map's, in the order of the document; keys are unique
  Location place;

  static Yaml scalar(std::string text, bool quoted = false);
  /// The entry of a map, or null.
  Entry const* entry(std::string_view key) const;
  /// The value of a map under a key, or the item of a list at a number from 0 on; null if there is none.
  Yaml const* inside(std::string_view name) const;
  /// The value at a dotted path of keys ("train.optimizer.lr"), or null.
  Yaml const* find(std::string_view path) const;
};

struct Yaml::Entry {
  std::string key;
  Location place;  ///< of the key
  Yaml value;
};

/// The value in a text; null if it holds none. `source` names the text in messages; `lines` says whether lines and columns mean anything
/// in it. Aliases are replaced by copies of what they name, and the merge key of YAML 1.1 (`<<: *base`, `<<: [*a, *b]`) by the entries of
/// the maps it names, first, but for keys that the map itself or an earlier one has. Throws ConfigError for what is not one clean YAML
/// document: bad syntax, bytes that are no UTF-8, control characters, tabs as indentation, duplicate keys, keys that are not words or are
/// longer than 250 bytes, tags, a second document, more than 64 levels, more than a million values.
Yaml parse_yaml(std::string_view text, std::string const& source, bool lines = true);

/// parse_yaml of a file of at most 16 MB. Throws ConfigError if there is no such file, FileError if it cannot be
/// read.
Yaml load_yaml(std::string const& path);

/// The value as YAML text that reads back as the same value here and in other readers (PyYAML): maps that fit a line of 100 columns as
/// `{…}`, others as blocks; lists as `[…]`; strings quoted only where they would read as something else.
std::string emit(Yaml const& value);

/// The value on one line: `{kind: sgd, lr: 0.1}`, `[1, 2]`, `"no"`.
std::string emit_line(Yaml const& value);

/// "section.key", or the key alone at the top.
std::string dotted(std::string_view section, std::string_view key);

/// A text as messages show it: in single quotes, on one line, not too long; characters that do not show as "\x0a" and "\u202e".
std::string shown(std::string_view text);

}  // namespace heed
