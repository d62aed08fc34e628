#include "nn/files/number.hpp"

#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace heed {

#ifndef __cpp_lib_to_chars

namespace {

/// What strtod() reads and from_chars() does not: spaces or a plus in front, hexadecimal numbers.
bool is_only_strtod(std::string_view text) { return text.find_first_of("+ \t\n\v\f\r") == 0 || text.find_first_of("xX") != text.npos; }

}  // namespace

/// Libraries without from_chars() for double, as clang 16's. strtod() rounds as it does; heed leaves the C locale alone.
template <>
std::optional<double> parsed_number<double>(std::string_view text) {
  if (text.empty() || is_only_strtod(text)) return std::nullopt;
  std::string const ended(text);
  char* end = nullptr;
  double const number = std::strtod(ended.c_str(), &end);
  if (end != ended.c_str() + ended.size()) return std::nullopt;
  bool const names_itself = text.find_first_of("nN") != text.npos;  // inf, nan
  bool const too_large = std::isinf(number) && !names_itself;
  bool const too_small = number == 0 && text.substr(0, text.find_first_of("eE")).find_first_of("123456789") != text.npos;
  return too_large || too_small ? std::nullopt : std::optional(number);
}

#endif

std::pair<std::string, std::string> told_apart(double a, double b) {
  int digits = 3;
  while (digits < 17 && a != b && fmt::format("{:.{}g}", a, digits) == fmt::format("{:.{}g}", b, digits)) ++digits;
  return {fmt::format("{:.{}g}", a, digits), fmt::format("{:.{}g}", b, digits)};
}

}  // namespace heed
