#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace heed {

/// Parses a whole text as a number by std::from_chars; nothing if it is not exactly one.
template <class Number>
std::optional<Number> parsed_number(std::string_view text) {
  Number number{};
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}
#ifndef __cpp_lib_to_chars
template <>
std::optional<double> parsed_number<double>(std::string_view text);
#endif

/// Two numbers in so many figures, three or more, that they differ if they do.
std::pair<std::string, std::string> told_apart(double a, double b);

}  // namespace heed
