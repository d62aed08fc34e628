#include "experiments/config/yaml.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "experiments/config/nearest.hpp"
#include "nn/files/number.hpp"
#include "nn/files/utf8.hpp"

namespace heed {
namespace {

constexpr std::size_t max_bytes = std::size_t{16} << 20;
constexpr std::size_t max_values = 1'000'000;
constexpr std::size_t max_levels = 64;

/// The text of a document and the locations in it.
class YamlText {
 public:
  YamlText(std::string_view text, std::string const& name, bool lines)
      : text_(text), name_(std::make_shared<std::string const>(name)), lines_(lines), line_starts_{0} {
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') line_starts_.push_back(i + 1);
  }

  /// The location of a byte, given its line and column in bytes, from zero. Counts on from the one before: else a long line takes forever.
  Location location(std::size_t line, std::size_t byte) {
    if (!lines_) return {name_, 0, 0};
    if (line != line_ || byte < byte_) line_ = line, byte_ = 0, characters_ = 0;
    std::size_t const start = line < line_starts_.size() ? line_starts_[line] : text_.size();
    auto const between = text_.substr(std::min(start + byte_, text_.size()), byte - byte_);
    characters_ += std::count_if(between.begin(), between.end(), [](char c) { return (c & 0xC0) != 0x80; });
    byte_ = byte;
    return {name_, static_cast<int>(line) + 1, static_cast<int>(characters_) + 1};
  }
  Location location(YAML::Mark const& mark) {
    return location(static_cast<std::size_t>(std::max(mark.line, 0)), static_cast<std::size_t>(std::max(mark.column, 0)));
  }

  bool reads(YAML::Mark const& mark, std::string_view word) const {
    return text_.substr(std::min(static_cast<std::size_t>(std::max(mark.pos, 0)), text_.size())).starts_with(word);
  }

  /// Refuses what YAML does not allow in a text, or allows and no reader agrees about.
  void check() {
    for (std::size_t line = 0; line < line_starts_.size(); ++line) {
      std::size_t const start = line_starts_[line];
      std::size_t const end = line + 1 < line_starts_.size() ? line_starts_[line + 1] - 1 : text_.size();
      bool indentation = true;
      for (std::size_t i = start; i < end;) {
        std::size_t const at = i;
        auto const code = decode_utf8(text_, i);
        auto const refuse = [&](std::string const& why) { throw ConfigError(location(line, at - start), why); };
        auto const byte = static_cast<unsigned>(static_cast<unsigned char>(text_[at]));
        if (!code) refuse(fmt::format("byte 0x{:02x} is not UTF-8 text", byte));
        if (byte == 0x7F || (byte < 0x20 && byte != '\t' && byte != '\r')) refuse(fmt::format("control character 0x{:02x}", byte));
        if (byte == '\t' && indentation) refuse("a tab in the indentation; YAML indents with spaces");
        indentation = indentation && byte == ' ';
      }
    }
  }

 private:
  std::string_view text_;
  std::shared_ptr<std::string const> name_;
  bool lines_;
  std::vector<std::size_t> line_starts_;
  std::size_t line_ = 0, byte_ = 0;
  std::ptrdiff_t characters_ = 0;
};

/// The numbers of values and of levels in a value, itself included.
std::pair<std::size_t, std::size_t> extent_of(Yaml const& value) {
  std::size_t values = 1, levels = 0;
  auto const add = [&](Yaml const& inner) {
    auto const [more, deep] = extent_of(inner);
    values += more;
    levels = std::max(levels, deep);
  };
  for (auto const& item : value.items) add(item);
  for (auto const& entry : value.entries) add(entry.value);
  return {values, levels + 1};
}

/// yaml-cpp 0.7 turns the escapes \N and \_ (U+0085, U+00A0) into one byte, where UTF-8 has two.
std::string with_escapes_mended(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t const start = i;
    if (!decode_utf8(text, i)) result += '\xC2';
    result += text.substr(start, i - start);
  }
  return result;
}

/// Builds the tree from the parser's events; the open lists and maps are a stack.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(YamlText& source) : source_(source) { root_.location = source.location(0, 0); }

  Yaml take() { return std::move(root_); }

  void OnDocumentStart(YAML::Mark const& mark) override {
    if (documents_++ == 0) return;
    bool const marked = source_.reads(mark, "---");
    throw ConfigError(source_.location(mark), marked ? "a second document begins here; heed reads one a file"
                                                     : "belongs to no key above it; is the indentation right?");
  }
  void OnDocumentEnd() override {}
  void OnNull(YAML::Mark const& mark, YAML::anchor_t anchor) override { add(open(Yaml::NodeKind::null, mark, ""), anchor); }
  void OnScalar(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor, std::string const& text) override {
    Yaml value = open(Yaml::NodeKind::scalar, mark, tag);
    value.text = with_escapes_mended(text);
    value.quoted = tag == "!";  // yaml-cpp's mark of a scalar in quotes or a block
    add(std::move(value), anchor);
  }
  void OnSequenceStart(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    stack_.push_back({open(Yaml::NodeKind::list, mark, tag), anchor});
  }
  void OnMapStart(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    stack_.push_back({open(Yaml::NodeKind::map, mark, tag), anchor});
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

  void OnAlias(YAML::Mark const& mark, YAML::anchor_t anchor) override {
    auto const known = anchors_.find(anchor);
    if (known == anchors_.end()) throw ConfigError(source_.location(mark), "an alias to the value that contains it");
    auto const [values, levels] = extent_of(known->second);
    check_levels(mark, levels);
    count(values, source_.location(mark));
    add(known->second, 0);  // keeps its location: there it can be corrected
  }

 private:
  struct Frame {
    Yaml value;
    YAML::anchor_t anchor;
    std::optional<std::string> key = {};  // of the entry whose value comes next
    Location key_location = {};
    std::unordered_map<std::string, int> lines = {};  // of the keys so far
    bool merges = false;                              // the key is that of a merge
    std::vector<Yaml> merged = {};                    // maps
  };

  Yaml open(Yaml::NodeKind kind, YAML::Mark const& mark, std::string const& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") throw ConfigError(source_.location(mark), "tags are not used here: " + shown(tag));
    Yaml value{kind, "", false, {}, {}, source_.location(mark)};
    count(1, value.location);
    check_levels(mark, kind == Yaml::NodeKind::list || kind == Yaml::NodeKind::map ? 1 : 0);
    return value;
  }

  void count(std::size_t values, Location const& location) {
    values_ += values;
    if (values_ > max_values) throw ConfigError(location, "more than a million values (aliases count as what they name)");
  }
  void check_levels(YAML::Mark const& mark, std::size_t more) {
    if (stack_.size() + more > max_levels)
      throw ConfigError(source_.location(mark), fmt::format("nested deeper than {} levels", max_levels));
  }

  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    auto& own = frame.value.entries;
    std::vector<Yaml::Entry> inherited;
    for (auto& map : frame.merged)
      for (auto& entry : map.entries)
        if (frame.lines.emplace(entry.key, 0).second) inherited.push_back(std::move(entry));
    own.insert(own.begin(), std::make_move_iterator(inherited.begin()), std::make_move_iterator(inherited.end()));
    add(std::move(frame.value), frame.anchor);
  }

  void add(Yaml value, YAML::anchor_t anchor) {
    if (anchor != 0) {
      count(extent_of(value).first, value.location);
      anchors_.insert_or_assign(anchor, value);
    }
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (Frame& top = stack_.back(); top.value.kind == Yaml::NodeKind::list) {
      top.value.items.push_back(std::move(value));
    } else if (!top.key) {
      begin_entry(top, value);
    } else if (top.merges) {
      merge(top, std::move(value));
      top.key.reset();
    } else {
      if (value.kind == Yaml::NodeKind::null) value.location = top.key_location;  // the parser is already at what follows
      top.value.entries.push_back({std::move(*top.key), top.key_location, std::move(value)});
      top.key.reset();
    }
  }

  void begin_entry(Frame& map, Yaml const& key) {
    if (key.kind != Yaml::NodeKind::scalar || key.text.empty()) {
      throw ConfigError(key.location, key.kind == Yaml::NodeKind::null ? "a key is missing before ':'" : "a key must be a word");
    }
    constexpr std::size_t longest = 250;  // written with escapes they are still the 1,024 characters that YAML reads as a key
    if (key.text.size() > longest)
      throw ConfigError(key.location, fmt::format("a key of {} bytes; the longest has {}", key.text.size(), longest));
    auto const [first, fresh] = map.lines.emplace(key.text, key.location.line);
    if (!fresh) {
      std::string path;
      for (auto const& frame : stack_) path += frame.key ? *frame.key + "." : "";
      auto const where = first->second > 0 ? fmt::format(" (first in line {})", first->second) : "";
      throw ConfigError(key.location, fmt::format("duplicate key {}{}", shown(path + key.text), where));
    }
    map.key = key.text;
    map.key_location = key.location;
    map.merges = key.text == "<<" && !key.quoted;
  }

  /// Notes the maps that a merge key names, the first of which counts where they have a key in common.
  static void merge(Frame& map, Yaml value) {
    bool const several = value.kind == Yaml::NodeKind::list;
    std::vector<Yaml> maps = several ? std::move(value.items) : std::vector{std::move(value)};
    for (auto& each : maps) {
      if (each.kind != Yaml::NodeKind::map)
        throw ConfigError(each.kind == Yaml::NodeKind::null ? map.key_location : each.location,
                          "'<<' merges a map, or a list of maps, into this one");
      map.merged.push_back(std::move(each));
    }
  }

  YamlText& source_;
  Yaml root_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Yaml> anchors_;
  std::size_t values_ = 0;
  int documents_ = 0;
};

/// The most likely mistake behind a message of yaml-cpp.
std::string advice(std::string_view message) {
  static constexpr std::array<std::pair<std::string_view, char const*>, 8> known{{
      {"illegal map value", " (is the indentation right? a text with ': ' in it needs quotes)"},
      {"end of map flow not found", " (is a ',' or a '}' missing?)"},
      {"end of sequence flow not found", " (is a ',' or a ']' missing?)"},
      {"end of map not found", " (is the indentation right? is there anything behind a closing quote or bracket?)"},
      {"unexpected scalar", " (is the indentation right? is there anything behind a closing quote or bracket?)"},  // the same, from 0.9 on
      {"illegal flow end", " (it closes nothing)"},
      {"illegal EOF in scalar", " (a quote is never closed)"},
      {"unknown token", " (a text that begins so needs quotes)"},
  }};
  auto const found = std::ranges::find(known, message, [](auto const& each) { return each.first; });
  return found == known.end() ? "" : found->second;
}

}  // namespace

std::string nearest_file(std::filesystem::path const& path) {
  std::vector<std::string> names;
  std::error_code failure;
  auto const folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  for (auto const& file : std::filesystem::directory_iterator(folder, failure)) names.push_back(file.path().filename().string());
  std::sort(names.begin(), names.end());
  return did_you_mean(path.filename().string(), names);
}

std::string to_string(Location const& location) {
  std::string const source = location.source ? *location.source : "configuration";
  return location.line > 0 ? fmt::format("{}:{}:{}", source, location.line, location.column) : source;
}

std::string shown(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string line = "'";
  for (std::size_t i = 0; i < text.size();) {
    if (i >= longest) return line + "…'";
    std::size_t const start = i;
    auto const c = decode_utf8(text, i);
    if (!c || is_visible(*c))
      line += text.substr(start, i - start);
    else
      line += fmt::format(fmt::runtime(*c < 0x80 ? "\\x{:02x}" : "\\u{:04x}"), static_cast<unsigned>(*c));
  }
  return line + "'";
}

std::string dotted(std::string_view section, std::string_view key) {
  return section.empty() ? std::string(key) : fmt::format("{}.{}", section, key);
}

Yaml Yaml::scalar(std::string text, bool quoted) { return {NodeKind::scalar, std::move(text), quoted, {}, {}, {}}; }
Yaml Yaml::map(std::vector<Entry> entries) { return {NodeKind::map, "", false, {}, std::move(entries), {}}; }

Yaml::Entry const* Yaml::entry(std::string_view key) const {
  auto const found = std::ranges::find(entries, key, &Entry::key);
  return found == entries.end() ? nullptr : &*found;
}

Yaml const* Yaml::inside(std::string_view name) const {
  Entry const* const found = entry(name);
  if (found || kind != NodeKind::list) return found ? &found->value : nullptr;
  auto const number = parsed_number<std::size_t>(name);
  return number && *number < items.size() ? &items[*number] : nullptr;
}

Yaml const* Yaml::find(std::string_view path) const {
  auto const dot = path.find('.');
  Yaml const* const first = inside(path.substr(0, dot));
  if (!first || dot == std::string_view::npos) return first;
  return first->find(path.substr(dot + 1));
}

Yaml parse_yaml(std::string_view text, std::string const& source_name, bool lines) {
  text = without_byte_order_mark(text);
  YamlText source(text, source_name, lines);
  source.check();
  Builder builder(source);
  try {
    // yaml-cpp 0.7 takes a quote that is still open at the last line's end for closed, but not if anything follows.
    std::istringstream stream(std::string(text) + (text.ends_with('\n') ? "#" : "\n#"));
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (YAML::Exception const& error) {
    throw ConfigError(source.location(error.mark), "not YAML: " + error.msg + advice(error.msg));
  }
  return builder.take();
}

Yaml load_yaml(std::string const& path) {
  std::error_code failure;
  auto const status = std::filesystem::status(path, failure);
  if (!std::filesystem::exists(status)) throw ConfigError(path + ": no such file" + nearest_file(path));
  if (std::filesystem::is_directory(status)) throw ConfigError(path + ": is a folder, not a configuration file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  do {  // piece by piece: a size may be unknown (a pipe) or wrong
    std::size_t const known = text.size();
    text.resize(known + (std::size_t{1} << 16));
    file.read(text.data() + known, static_cast<std::streamsize>(text.size() - known));
    text.resize(known + static_cast<std::size_t>(file.gcount()));
  } while (file && text.size() <= max_bytes);
  if (!file.is_open() || file.bad()) throw FileError(path + ": cannot be read: " + std::strerror(errno));
  if (text.size() > max_bytes) throw ConfigError(path + ": larger than 16 MB; that is no configuration");
  return parse_yaml(text, path);
}

}  // namespace heed
