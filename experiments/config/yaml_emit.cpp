#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "experiments/config/scalar.hpp"
#include "experiments/config/yaml.hpp"
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
    if (code == '\n')
      result += "\\n";
    else if (code == '\t')
      result += "\\t";
    else if (printable)
      result += text.substr(start, i - start);
    else
      result += fmt::format(fmt::runtime(code < 0x100 ? "\\x{:02x}" : "\\u{:04x}"), static_cast<unsigned>(code));
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

}  // namespace heed
