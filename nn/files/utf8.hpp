#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace heed {

/// The code point at byte `i`, which is advanced past it; nothing if the bytes there are not UTF-8 (overlong forms, surrogates and code
/// points beyond U+10FFFF included), and `i` advances by one byte.
std::optional<char32_t> decode_utf8(std::string_view text, std::size_t& i);

/// UTF-8 of one code point.
std::string to_utf8(char32_t character);

/// The text with U+FFFD for every byte that is not UTF-8.
std::string valid_utf8(std::string_view text);

/// The text without a leading byte-order mark (EF BB BF).
std::string_view without_byte_order_mark(std::string_view text);

/// Unicode's property White_Space.
constexpr bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/// Whether it is a control character, C0 or C1, which a terminal may interpret.
bool is_control(char32_t c);

/// The text for a terminal: control characters other than tab and line feed, and bytes that are not UTF-8, become U+FFFD.
std::string printable(std::string_view text);

/// Whether a character is displayed as itself: no control character, line end, or bidirectional mark, which can disguise a name.
bool is_visible(char32_t c);

/// Valid UTF-8 for a page, a figure or a table of Markdown, whose own words it cannot turn round: bidirectional marks are shown as code
/// points, U+202E; letters read from right to left, and the blanks among them, stand between U+2068 and U+2069 (isolated, as by <bdi>).
std::string isolated(std::string_view text);

}  // namespace heed
