#include "experiments/config/scalar.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/nearest.hpp"
#include "nn/files/number.hpp"

namespace heed {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string_view without_sign(std::string_view text) { return text.starts_with('+') || text.starts_with('-') ? text.substr(1) : text; }
std::string_view without_plus(std::string_view text) { return text.starts_with('+') ? text.substr(1) : text; }
bool digit(char c) { return c >= '0' && c <= '9'; }

bool admits(Field const& field, double value) {
  if (!std::isfinite(value)) return false;
  return field.open ? value > field.min && value < field.max : value >= field.min && value <= field.max;
}

std::string range(Field const& field) {
  std::string_view const above = field.open ? ">" : "≥", below = field.open ? "<" : "≤";
  std::string const low = field.min > -infinity ? fmt::format(" {} {}", above, field.min) : "";
  std::string const high = field.max < infinity ? fmt::format(" {} {}", below, field.max) : "";
  return low + (low.empty() || high.empty() ? "" : " and") + high;
}

/// A number without the zeros before its first digit.
std::string without_zeros(std::string_view text) {
  auto const number = without_sign(text);
  std::size_t zeros = 0;
  while (zeros + 1 < number.size() && number[zeros] == '0' && digit(number[zeros + 1])) ++zeros;
  return std::string(text.substr(0, text.size() - number.size())).append(number.substr(zeros));
}

std::string integer_hint(Yaml const& node) {
  auto const real = node.quoted ? std::nullopt : parse_real(without_zeros(node.text));
  if (!real || std::abs(*real) >= 9e15 || *real != std::floor(*real)) return "";
  return fmt::format(" (write {:.0f})", *real);
}

/// A single value; the hint if it does not fit.
std::optional<std::string> read_one(Yaml const& node, Field const& field, std::string& target) {
  if (node.kind != Yaml::NodeKind::scalar) return "";
  if (!field.words.empty() && std::find(field.words.begin(), field.words.end(), node.text) == field.words.end()) {
    auto const instead = field.others.find(node.text);
    return instead != field.others.end() ? "; " + instead->second : did_you_mean(node.text, field.words);
  }
  target = node.text;
  return std::nullopt;
}

template <class T>
std::optional<std::string> read_one(Yaml const& node, Field const& field, T& target) {
  if (node.kind != Yaml::NodeKind::scalar) return "";
  if (node.quoted) return " (remove the quotes)";
  std::optional<T> value;
  if constexpr (std::is_same_v<T, bool>)
    value = parse_truth(node.text);
  else if constexpr (std::is_same_v<T, double>)
    value = parse_real(node.text);
  else
    value = parse_integer(node.text);
  if (!value && std::is_same_v<T, double> && parse_real(without_zeros(node.text)))
    return fmt::format(" (write {})", without_zeros(node.text));
  if (!value) return std::is_same_v<T, Index> ? integer_hint(node) : "";
  if (!std::is_same_v<T, bool> && !admits(field, static_cast<double>(*value))) return "";
  target = *value;
  return std::nullopt;
}

Yaml printed(bool value) { return Yaml::scalar(value ? "true" : "false"); }
Yaml printed(Index value) { return Yaml::scalar(std::to_string(value)); }
Yaml printed(double value) { return Yaml::scalar(print_real(value)); }
Yaml printed(std::string const& value) { return Yaml::scalar(value, true); }

template <class T>
Yaml printed(std::optional<T> const& value) {
  return value ? printed(*value) : Yaml{};
}

template <class T>
Yaml printed(std::vector<T> const& values) {
  Yaml list;
  list.kind = Yaml::NodeKind::list;
  for (auto const& value : values) list.items.push_back(printed(value));
  return list;
}

/// The type of a single value, of an optional one and of a list's items: declared for decltype.
template <class T>
T single(T const&);
template <class T>
T single(std::optional<T> const&);
template <class T>
T single(std::vector<T> const&);

template <class T>
std::optional<Misfit> read_into(Yaml const& node, Field const& field, T& target) {
  if (auto const hint = read_one(node, field, target)) return Misfit{node, "", *hint};
  return std::nullopt;
}

template <class T>
std::optional<Misfit> read_into(Yaml const& node, Field const& field, std::optional<T>& target) {
  bool const none = !std::is_same_v<T, std::string> && node.kind == Yaml::NodeKind::scalar && !node.quoted && node.text == "none";
  std::optional<T> value;
  if (!none && node.kind != Yaml::NodeKind::null)
    if (auto const wrong = read_into(node, field, value.emplace())) return wrong;
  target = std::move(value);
  return std::nullopt;
}

template <class T>
std::optional<Misfit> read_into(Yaml const& node, Field const& field, std::vector<T>& target) {
  bool const row = std::holds_alternative<std::vector<std::vector<double>>*>(field.target);
  if (node.kind != Yaml::NodeKind::list)
    return Misfit{node, "", node.kind == Yaml::NodeKind::scalar && !row ? fmt::format(" (write [{}])", emit_line(node)) : ""};
  std::vector<T> values;
  for (auto const& item : node.items)
    if (auto const wrong = read_into(item, field, values.emplace_back()))
      return Misfit{wrong->node, fmt::format("[{}]", values.size() - 1) + wrong->where, wrong->hint};
  target = std::move(values);
  return std::nullopt;
}

template <class T>
constexpr bool is_section =
    std::is_same_v<T, Settings> || std::is_same_v<T, Choice> || std::is_same_v<T, SettingsList> || std::is_same_v<T, SettingsMap>;

}  // namespace

std::optional<Index> parse_integer(std::string_view text) {
  auto const digits = without_sign(text);
  bool const plain = !digits.empty() && std::all_of(digits.begin(), digits.end(), digit) && (digits[0] != '0' || digits.size() == 1);
  return plain ? parsed_number<Index>(without_plus(text)) : std::nullopt;
}

std::optional<double> parse_real(std::string_view text) {
  auto const number = without_sign(text);
  bool const begins = !number.empty() && (digit(number[0]) || (number[0] == '.' && number.size() > 1 && digit(number[1])));
  bool const octal = number.size() > 1 && number[0] == '0' && digit(number[1]);  // to readers of YAML 1.1
  return begins && !octal ? parsed_number<double>(without_plus(text)) : std::nullopt;
}

std::optional<bool> parse_truth(std::string_view text) {
  for (std::string_view const word : {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})
    if (text == word) return true;
  for (std::string_view const word : {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})
    if (text == word) return false;
  return std::nullopt;
}

std::string print_real(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  char buffer[32];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, value + 0.0).ptr);  // −0 + 0 is 0, as which it is written
  auto const exponent = std::min(text.find('e'), text.size());
  if (text.find('.') == text.npos) text.insert(exponent, ".0");
  return text;
}

std::optional<Misfit> read_value(Yaml const& node, Field const& field) {
  return std::visit(
      [&](auto* target) -> std::optional<Misfit> {
        if constexpr (is_section<std::remove_pointer_t<decltype(target)>>)
          return std::nullopt;
        else
          return read_into(node, field, *target);
      },
      field.target);
}

std::string wanted(Field const& field, bool item) {
  return std::visit(
      [&](auto* target) -> std::string {
        using T = std::remove_pointer_t<decltype(target)>;
        using Value = decltype(single(std::declval<T>()));
        bool const list = std::is_same_v<T, std::vector<Value>> && !item;
        std::string const or_null = std::is_same_v<T, std::optional<Value>> ? " or null" : "";
        std::string const words = fmt::format("{}", fmt::join(field.words, ", "));
        if constexpr (std::is_same_v<T, Settings>)
          return "a section";
        else if constexpr (std::is_same_v<T, Choice>)
          return "a section with 'kind: …'";
        else if constexpr (std::is_same_v<T, SettingsList>)
          return "a list of sections";
        else if constexpr (std::is_same_v<T, SettingsMap>)
          return "sections by name";
        else if constexpr (std::is_same_v<T, bool>)
          return "true or false";
        else if constexpr (std::is_same_v<Value, std::vector<double>>)
          return "rows of numbers, [[1, 2], [3, 4]]" + range(field);
        else if constexpr (std::is_same_v<Value, std::string>)
          return (field.words.empty() ? (list ? "a list of strings" : "a string") : (list ? "a list of " : "one of ") + words) + or_null;
        else
          return (list ? "a list of numbers" : std::is_same_v<Value, double> ? "a number" : "an integer") + range(field) + or_null;
      },
      field.target);
}

std::string found(Yaml const& node) {
  if (node.kind == Yaml::NodeKind::null) return "nothing";
  if (node.kind == Yaml::NodeKind::list) return "a list";
  if (node.kind == Yaml::NodeKind::map) return node.text.empty() ? "a section" : shown(node.text) + " with keys inside";
  return node.quoted ? fmt::format("the string {} in quotes", shown(node.text)) : shown(node.text);
}

Yaml value_of(Field const& field) {
  return std::visit(
      [](auto* target) -> Yaml {
        using T = std::remove_pointer_t<decltype(target)>;
        if constexpr (is_section<T>)
          return {};
        else
          return printed(*target);
      },
      field.target);
}

}  // namespace heed
