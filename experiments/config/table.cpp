#include "experiments/config/table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "nn/files/utf8.hpp"

namespace heed {

namespace {

/// Combining marks, joiners and variation selectors: what Latin and Greek formulas may hold.
bool combines(char32_t c) {
  return (c >= 0x300 && c < 0x370) || (c >= 0x200B && c < 0x2010) || (c >= 0x20D0 && c < 0x2100) || (c >= 0xFE00 && c < 0xFE10);
}

/// Columns of the code point at byte i, which moves behind it; bytes that are no UTF-8 take one.
std::size_t columns_of_next(std::string_view text, std::size_t& i) {
  auto const c = decode_utf8(text, i);
  return c && combines(*c) ? 0 : 1;
}

constexpr std::size_t max_characters = 8;

/// "1.23e238" with so many digits behind the point.
std::string by_powers_of_ten(double size, int digits) {
  auto const text = fmt::format("{:.{}e}", size, digits);
  auto const e = text.find('e');
  auto exponent = text.substr(e + 1);
  bool const negative = exponent.front() == '-';
  exponent.erase(0, exponent.find_first_not_of("+-0"));
  if (exponent.empty()) exponent = "0";
  return fmt::format("{}e{}{}", text.substr(0, e), negative ? "-" : "", exponent);
}

}  // namespace

std::size_t columns(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size();) count += columns_of_next(text, i);
  return count;
}

std::string cut(std::string_view text, std::size_t width) {
  if (columns(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t end = 0;  // behind what fits, the last column being for the ellipsis
  for (std::size_t i = 0, count = 0; i < text.size(); end = i) {
    count += columns_of_next(text, i);
    if (count >= width) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string markdown_row(std::vector<std::string> const& cells) {
  std::string line = "|";
  for (auto const& cell : cells) {
    line += ' ';
    for (char const c : isolated(cell)) line += c == '|' ? std::string("\\|") : std::string(1, c);
    line += " |";
  }
  return line + '\n';
}

std::string table(std::vector<std::vector<std::string>> const& rows) {
  std::vector<std::size_t> widths;
  for (auto const& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  std::string page;
  for (auto const& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (widths[i] > 0) line += "  " + row[i] + std::string(widths[i] - columns(row[i]), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    page += line + '\n';
  }
  return page;
}

std::string short_number(double x, int decimals, bool plus) {
  if (std::isnan(x)) return "NaN";
  bool const zero = std::abs(x) < 0.5 * std::pow(10, -decimals) && fmt::format("{:.{}f}", x, decimals).size() <= max_characters;
  std::string const sign = std::signbit(x) && !zero ? "-" : plus ? "+" : "";  // what is shown as 0 has none
  double const size = std::abs(x);
  if (std::isinf(size)) return sign + "∞";
  std::size_t const room = max_characters - sign.size();
  if (size == 0) return sign + fmt::format("{:.{}f}", size, std::min<int>(decimals, static_cast<int>(room) - 2));
  for (int digits = decimals; digits >= 0; --digits) {
    auto text = fmt::format("{:.{}f}", size, digits);
    if (text.size() <= room) return sign + text;
    if (size < 1) break;  // fewer decimals would show less of it
  }
  for (int digits = 2; digits > 0; --digits) {
    auto text = by_powers_of_ten(size, digits);
    if (text.size() <= room) return sign + text;
  }
  return sign + by_powers_of_ten(size, 0);
}

NumberFormat::NumberFormat(double largest) {
  double const size = std::abs(largest);
  int const power = size > 0 && std::isfinite(size) ? static_cast<int>(std::floor(std::log10(size))) : 0;
  decimals_ = std::max(std::clamp(4 - power, 0, 4), std::min(2 - power, 12));
}

NumberFormat NumberFormat::of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  for (double& value : values) value = std::abs(value);
  if (values.empty()) return NumberFormat(0);
  std::ranges::sort(values);
  double const median = values[(values.size() - 1) / 2];
  if (median > 0) std::erase_if(values, [&](double value) { return value / median > 1000; });
  return NumberFormat(values.back());
}

std::string NumberFormat::operator()(double x) const { return short_number(x, decimals_); }

std::string NumberFormat::interval(double low, double high) const { return fmt::format("[{}, {}]", (*this)(low), (*this)(high)); }

std::string NumberFormat::difference(double x, std::optional<double> const& half_width) const {
  std::string const mean = short_number(x, decimals_, true);
  return half_width ? fmt::format("{} ± {}", mean, (*this)(*half_width)) : mean;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

std::string indented(std::string const& lines) {
  std::string result;
  for (std::size_t i = 0, end = 0; i < lines.size(); i = end) {
    end = lines.find('\n', i) + 1;
    result += "  " + lines.substr(i, end - i);
  }
  return result;
}

}  // namespace heed
