#include "nn/files/utf8.hpp"

#include <utility>

#include <fmt/format.h>

namespace heed {

namespace {

/// Unicode's bidirectional marks, embeddings, overrides and isolates.
bool turns(char32_t c) { return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069); }

/// The blocks of Unicode whose letters are read from right to left.
bool is_right_to_left(char32_t c) {
  return (c >= 0x590 && c < 0x900) || (c >= 0xFB1D && c < 0xFE00) || (c >= 0xFE70 && c < 0xFEFF) || (c >= 0x10800 && c < 0x11000) ||
         (c >= 0x1E800 && c < 0x1F000);
}

/// The text with U+FFFD for every byte that is not UTF-8, and for every character that `keep` refuses.
template <class Keep>
std::string kept(std::string_view text, Keep const& keep) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    auto const start = i;
    auto const character = decode_utf8(text, i);
    result += character && keep(*character) ? text.substr(start, i - start) : "\uFFFD";
  }
  return result;
}

}  // namespace

std::optional<char32_t> decode_utf8(std::string_view text, std::size_t& i) {
  auto const byte = [&](std::size_t at) { return static_cast<char32_t>(static_cast<unsigned char>(text[at])); };
  char32_t const lead = byte(i);
  std::size_t const start = i++;
  if (lead < 0x80) return lead;
  std::size_t const length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || start + length > text.size()) return std::nullopt;
  char32_t code = lead & (0x7Fu >> length);
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(start + k) & 0xC0) != 0x80) return std::nullopt;
    code = code << 6 | (byte(start + k) & 0x3F);
  }
  char32_t const min_code = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  if (code < min_code || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return std::nullopt;
  i = start + length;
  return code;
}

std::string to_utf8(char32_t c) {
  auto const byte = [](char32_t bits) { return static_cast<char>(static_cast<unsigned char>(bits)); };
  auto const tail = [&](int shift) { return byte(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xc0 | (c >> 6)), tail(0)};
  if (c < 0x10000) return {byte(0xe0 | (c >> 12)), tail(6), tail(0)};
  return {byte(0xf0 | (c >> 18)), tail(12), tail(6), tail(0)};
}

std::string valid_utf8(std::string_view text) {
  return kept(text, [](char32_t) { return true; });
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.starts_with(mark) ? text.substr(mark.size()) : text;
}

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); }

std::string printable(std::string_view text) {
  return kept(text, [](char32_t c) { return !is_control(c) || c == '\n' || c == '\t'; });
}

bool is_visible(char32_t c) {
  bool const control = is_control(c) || c == 0x2028 || c == 0x2029 || c == 0xFEFF;
  return !control && !turns(c);
}

std::string isolated(std::string_view text) {
  std::string result, blanks;
  bool within = false;  // behind a letter that is read from right to left
  auto const end = [&] { result += (std::exchange(within, false) ? "\u2069" : "") + std::exchange(blanks, ""); };
  for (std::size_t i = 0; i < text.size();) {
    auto const start = i;
    auto const c = decode_utf8(text, i).value_or(0xFFFD);
    if (within && c == ' ') {
      blanks += ' ';
    } else if (is_right_to_left(c) && !turns(c)) {
      result += (std::exchange(within, true) ? "" : "\u2068") + std::exchange(blanks, "");
      result += text.substr(start, i - start);
    } else {
      end();
      result += turns(c) ? fmt::format("U+{:04X}", static_cast<unsigned>(c)) : to_utf8(c);
    }
  }
  end();
  return result;
}

}  // namespace heed
