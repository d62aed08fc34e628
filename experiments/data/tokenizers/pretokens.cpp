#include "experiments/data/tokenizers/pretokens.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>

#include <utf8proc.h>

#include "nn/files/utf8.hpp"

namespace heed {

namespace {

enum class Class : std::uint8_t { letter, number, space, other };

Class class_of(char32_t c) {
  if (is_white_space(c)) return Class::space;
  auto const category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) return Class::letter;
  if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) return Class::number;
  return Class::other;
}

constexpr std::array<Class, 128> ascii_classes = [] {
  std::array<Class, 128> classes{};
  for (char32_t c = 0; c < 128; ++c) {
    bool const letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), number = c >= '0' && c <= '9';
    classes[c] = is_white_space(c) ? Class::space : letter ? Class::letter : number ? Class::number : Class::other;
  }
  return classes;
}();

/// The class of the character that begins at byte i, which moves behind it.
Class next_class(std::string_view text, std::size_t& i) {
  if (auto const byte = static_cast<unsigned char>(text[i]); byte < 0x80) {
    ++i;
    return ascii_classes[byte];
  }
  auto const character = decode_utf8(text, i);
  return character ? class_of(*character) : Class::other;
}

/// Where the run of characters of one class ends that begins at `begin`.
std::size_t run_end(std::string_view text, std::size_t begin, Class of) {
  for (auto i = begin; i < text.size(); begin = i)
    if (next_class(text, i) != of) return begin;
  return text.size();
}

}  // namespace

std::size_t pretoken_end(std::string_view text) {
  if (text.front() == '\'')
    for (std::string_view const ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
      if (text.starts_with(ending)) return ending.size();
  std::size_t i = 0;
  auto const first = next_class(text, i);
  if (first != Class::space) return run_end(text, i, first);
  if (i == text.size()) return i;
  if (auto after = i; text.front() == ' ')
    if (auto const second = next_class(text, after); second != Class::space) return run_end(text, after, second);
  // White space up to the end of the text, or up to its last character, which may belong to what follows.
  for (std::size_t last = 0; i < text.size();) {
    auto const begin = i;
    if (next_class(text, i) != Class::space) return last > 0 ? last : begin;
    last = begin;
  }
  return text.size();
}

}  // namespace heed
