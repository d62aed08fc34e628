#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/config.hpp"
#include "experiments/config/scalar.hpp"
#include "experiments/config/table.hpp"
#include "nn/files/utf8.hpp"

namespace heed {
namespace {

constexpr std::size_t widest_line = 100;

/// Words that some reader of YAML takes for null, a truth value or a number.
bool reserved(std::string_view text) {
  static constexpr std::array words = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf", "infinity", "nan"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(words.begin(), words.end(), lower) != words.end();
}

/// A string that every reader takes for itself without quotes: words and paths.
bool plain_string(std::string_view text) {
  auto const letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto const inside = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '/' || c == '+' || c == '-' || c == ' ';
  };
  if (text.empty() || text.back() == ' ' || reserved(text)) return false;
  bool const begins = letter(text[0]) || text[0] == '/' || text.starts_with("./") || text.starts_with("../");
  return begins && std::all_of(text.begin(), text.end(), inside);
}

std::string quote(std::string_view bytes) {
  std::string const text = valid_utf8(bytes);
  std::string result = "\"";
  for (std::size_t i = 0; i < text.size();) {
    std::size_t const start = i;
    char32_t const code = *decode_utf8(text, i);
    bool const printable = code >= 0x20 && !(code >= 0x7F && code < 0xA0) && code != 0x2028 && code != 0x2029 && code != 0xFEFF &&
                           code != 0xFFFE && code != 0xFFFF;
    if (code == '"' || code == '\\') result += '\\';
    result += code == '\n'   ? "\\n"
              : code == '\t' ? "\\t"
              : printable    ? text.substr(start, i - start)
                             : fmt::format(fmt::runtime(code < 0x100 ? "\\x{:02x}" : "\\u{:04x}"), static_cast<unsigned>(code));
  }
  return result + '"';
}

std::string scalar(Yaml const& value) {
  bool const number = parse_integer(value.text) || parse_real(value.text);  // and no date, no 0o7, no 1:30
  bool const bare = plain_string(value.text) || (!value.quoted && (number || reserved(value.text)));
  return bare ? value.text : quote(value.text);
}

std::string key(std::string_view text) { return plain_string(text) ? std::string(text) : quote(text); }

void block(Yaml const& map, std::size_t indent, std::string& out) {
  for (auto const& entry : map.entries) {
    std::string const head = std::string(indent, ' ') + key(entry.key) + ":";
    std::string const line = emit_line(entry.value);
    bool const wide = head.size() + 1 + line.size() > widest_line;
    bool const map_inside = wide && entry.value.kind == Yaml::NodeKind::map && !entry.value.entries.empty();
    bool const sections = wide && std::ranges::any_of(entry.value.items, [](Yaml const& item) { return item.kind == Yaml::NodeKind::map; });
    out += head;
    out += map_inside || sections ? "\n" : ' ' + line + '\n';
    if (map_inside) block(entry.value, indent + 2, out);
    if (!sections) continue;
    for (auto const& item : entry.value.items) out += std::string(indent + 2, ' ') + "- " + emit_line(item) + "\n";
  }
}

/// Whether a dotted key is a switch in settings of any kind that the choices on its way have; items of lists have numbers in it, or none.
bool is_switch(Settings& settings, std::string_view key) {
  auto const dot = key.find('.');
  auto const rest = dot == key.npos ? "" : key.substr(dot + 1);
  auto const item = rest.substr(0, rest.find('.')), behind = rest.substr(std::min(item.size() + 1, rest.size()));
  for (auto const& field : settings.fields()) {
    if (field.name != key.substr(0, dot)) continue;
    if (rest.empty()) return std::holds_alternative<bool*>(field.target);
    if (auto* const section = std::get_if<Settings*>(&field.target)) return is_switch(**section, rest);
    if (auto* const list = std::get_if<SettingsList*>(&field.target))
      return is_switch(*(*list)->one(), parse_integer(item) ? behind : rest);
    if (auto* const named = std::get_if<SettingsMap*>(&field.target)) return is_switch(*(*named)->one(), behind);
    if (auto* const choice = std::get_if<Choice*>(&field.target))
      return std::ranges::any_of((*choice)->options, [&](Choice::Option const& option) { return is_switch(*option.make(), rest); });
  }
  return false;
}

/// Adds a row of key, type, default and meaning for each field.
void add_rows(Settings& settings, std::string const& section, TableRows& rows) {
  for (auto const& field : settings.fields()) {
    std::string const path = dotted(section, field.name);
    if (auto* const sub = std::get_if<Settings*>(&field.target)) {
      auto const words = (*sub)->short_words();
      auto const either = words.empty() ? "" : fmt::format(" or one of {}", fmt::join(words, ", "));
      rows.push_back({path, wanted(field) + either, "", field.help});
      add_rows(**sub, path, rows);
    } else if (auto* const list = std::get_if<SettingsList*>(&field.target)) {
      rows.push_back({path, wanted(field), "[]", field.help});
      add_rows(*(*list)->one(), path, rows);
    } else if (auto* const named = std::get_if<SettingsMap*>(&field.target)) {
      rows.push_back({path, wanted(field), "{}", field.help});
      add_rows(*(*named)->one(), dotted(path, "NAME"), rows);
    } else if (auto* const choice = std::get_if<Choice*>(&field.target)) {
      rows.push_back({path, wanted(field), (*choice)->kind, field.help});
      for (auto const& option : (*choice)->options) {
        rows.push_back({dotted(path, "kind: ") + option.name, "", "", option.help});
        add_rows(*option.make(), path, rows);
      }
    } else {
      rows.push_back({path, wanted(field), field.required ? "required" : emit_line(value_of(field)), field.help});
    }
  }
}

}  // namespace

std::string emit_line(Yaml const& value) {
  if (value.kind == Yaml::NodeKind::null) return "null";
  if (value.kind == Yaml::NodeKind::scalar) return scalar(value);
  std::string line;
  for (auto const& item : value.items) line += (line.empty() ? "" : ", ") + emit_line(item);
  for (auto const& entry : value.entries) line += (line.empty() ? "" : ", ") + key(entry.key) + ": " + emit_line(entry.value);
  return value.kind == Yaml::NodeKind::list ? '[' + line + ']' : '{' + line + '}';
}

std::string emit(Yaml const& value) {
  if (value.kind != Yaml::NodeKind::map || value.entries.empty()) return emit_line(value) + '\n';
  std::string out;
  block(value, 0, out);
  return out;
}

void quote_texts(Yaml& value, std::string const& key, Settings& settings) {
  if (value.kind == Yaml::NodeKind::scalar && !value.quoted) {
    bool const number = parse_integer(value.text) || parse_real(value.text);
    value.quoted = !number && !(parse_truth(value.text) && is_switch(settings, key));
    auto const exponent = value.text.find("e-");
    if (number && exponent < value.text.find('.')) value.text.insert(exponent, ".");
  }
  for (auto& item : value.items) quote_texts(item, key, settings);
  for (auto& entry : value.entries) quote_texts(entry.value, dotted(key, entry.key), settings);
}

Yaml tree(Settings& settings) {
  if (auto const word = settings.word(); !word.empty()) return Yaml::scalar(word, true);
  auto map = Yaml::map({});
  for (auto const& field : settings.fields()) {
    Yaml value = value_of(field);
    if (auto* const sub = std::get_if<Settings*>(&field.target)) value = tree(**sub);
    if (auto* const list = std::get_if<SettingsList*>(&field.target)) {
      value.kind = Yaml::NodeKind::list;
      for (std::size_t i = 0; i < (*list)->size(); ++i) value.items.push_back(tree((*list)->at(i)));
    }
    if (auto* const named = std::get_if<SettingsMap*>(&field.target)) {
      if (!(*named)->word.empty())
        value = Yaml::scalar((*named)->word, true);
      else
        value.kind = Yaml::NodeKind::map;
      for (auto const& name : (*named)->names()) value.entries.push_back({name, {}, tree((*named)->at(name))});
    }
    if (auto* const choice = std::get_if<Choice*>(&field.target); choice && (*choice)->settings) {
      value = tree(*(*choice)->settings);
      value.entries.insert(value.entries.begin(), {"kind", {}, Yaml::scalar((*choice)->kind, true)});
    }
    map.entries.push_back({field.name, {}, std::move(value)});
  }
  return map;
}

std::string emit(Settings& settings) { return emit(tree(settings)); }

std::vector<std::pair<std::string, std::string>> flatten(Yaml const& root) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (auto const& entry : root.entries) {
    if (entry.value.kind != Yaml::NodeKind::map || entry.value.entries.empty()) pairs.emplace_back(entry.key, emit_line(entry.value));
    if (entry.value.kind == Yaml::NodeKind::map)
      for (auto const& [key, value] : flatten(entry.value)) pairs.emplace_back(dotted(entry.key, key), value);
  }
  return pairs;
}

std::vector<std::string> differing_keys(Yaml const& a, Yaml const& b) {
  auto const left = flatten(a), right = flatten(b);
  std::set<std::pair<std::string, std::string>> const in_a(left.begin(), left.end()), in_b(right.begin(), right.end());
  std::vector<std::string> result;
  auto const add = [&](auto const& from, auto const& other) {
    for (auto const& pair : from)
      if (!other.contains(pair) && std::ranges::find(result, pair.first) == result.end()) result.push_back(pair.first);
  };
  add(left, in_b);
  add(right, in_a);
  return result;
}

std::string describe(Settings& settings, std::size_t indent, std::string const& section) {
  TableRows rows;
  add_rows(settings, "", rows);
  std::erase_if(rows, [&](auto const& row) { return !section.empty() && !is_within(row[0], section); });
  return table(rows, indent, {whole_lines, 40, 24});
}

}  // namespace heed
