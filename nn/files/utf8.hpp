#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace heed {

/// The code point that begins at byte `i`, which moves behind it; nothing if the bytes there are not UTF-8 (overlong forms, surrogates
/// and what lies beyond U+10FFFF included), and `i` moves by one byte.
std::optional<char32_t> decode_utf8(std::string_view text, std::size_t& i);

/// UTF-8 of one code point.
std::string to_utf8(char32_t character);

/// The text with U+FFFD for every byte that is not UTF-8.
std::string valid_utf8(std::string_view text);

/// The text behind a byte-order mark (EF BB BF), with which some editors begin a file; the whole text if it begins with none.
std::string_view without_byte_order_mark(std::string_view text);

/// Unicode's property White_Space.
constexpr bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/// Whether it is a control character, C0 or C1: some move a terminal's cursor, or begin a command to it.
bool is_control(char32_t c);

/// The text for a terminal: U+FFFD for every control character but tab and new line, and for every byte that is not UTF-8.
std::string printable(std::string_view text);

/// Whether a character shows as itself: no control character or line end, and no mark that turns the text around it (Unicode's
/// bidirectional ones), which would make a reader see another name.
bool is_visible(char32_t c);

}  // namespace heed
