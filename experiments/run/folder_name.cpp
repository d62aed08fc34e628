#include "experiments/run/folder_name.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "nn/files/sha256.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

/// Why it is no name; nothing if it is one.
std::optional<std::string> fault_in(std::string_view name) {
  constexpr std::size_t longest = 240;  // file systems allow 255, and a folder that is put aside gets a number
  if (name.empty()) return "it is empty";
  if (name.front() == '/') return "it begins with '/'";
  for (std::size_t i = 0; i < name.size();) {
    auto const character = decode_utf8(name, i);
    if (!character) return "it is not UTF-8";
    if (!is_visible(*character)) return fmt::format("it holds U+{:04X}, which is not shown", static_cast<unsigned>(*character));
  }
  for (std::size_t begin = 0; begin <= name.size();) {
    auto const end = std::min(name.find('/', begin), name.size());
    auto const part = name.substr(begin, end - begin);
    if (part.empty()) return "a name is missing beside '/'";
    if (part == "." || part == "..") return fmt::format("'{}' is no name", part);
    if (part.size() > longest) return fmt::format("it has {} bytes, more than {}", part.size(), longest);
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace

void check_folder_name(Location const& place, std::string_view key, std::string_view name) {
  if (auto const fault = fault_in(name))
    throw ConfigError(place, fmt::format("{}: {} is not the name of a folder inside the output folder: {}", key, shown(name), *fault));
}

void check_arm_name(Location const& place, std::string_view name) {
  auto fault = fault_in(name);
  if (!fault && name.find('/') != name.npos) fault = "it holds '/'";
  if (!fault && name.size() > most_label) fault = fmt::format("it has {} bytes, more than {}", name.size(), most_label);
  if (fault)
    throw ConfigError(place, fmt::format("add: {} cannot be an arm's name, after which folders are named: {}", shown(name), *fault));
}

std::string file_label(std::string_view text) {
  std::string label(text.empty() ? "none" : text);
  auto const is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '+';
  };
  std::ranges::replace_if(
      label, [&](char c) { return !is_plain(c); }, '-');
  return label;
}

std::string cut_label(std::string label) {
  if (label.size() <= most_label) return label;
  auto const hash = sha256(std::as_bytes(std::span(label))).substr(0, 8);
  std::size_t end = most_label - 1 - hash.size();
  while ((static_cast<unsigned char>(label[end]) & 0xC0) == 0x80) --end;  // not inside of a character
  label.resize(end);
  return label + "-" + hash;
}

}  // namespace heed
