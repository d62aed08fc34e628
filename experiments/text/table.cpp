#include "experiments/text/table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "experiments/text/utf8.hpp"

namespace heed {

namespace {

/// Combining marks, joiners and variation selectors: what Latin and Greek formulas may hold.
bool combines(char32_t c) {
  return (c >= 0x300 && c < 0x370) || (c >= 0x200B && c < 0x2010) || (c >= 0x20D0 && c < 0x2100) || (c >= 0xFE00 && c < 0xFE10);
}

/// Columns of the code point at byte i, which moves behind it; bytes that are no UTF-8 take one.
std::size_t step(std::string_view text, std::size_t& i) {
  auto const c = decode_utf8(text, i);
  return c && combines(*c) ? 0 : 1;
}

}  // namespace

std::size_t columns(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size();) count += step(text, i);
  return count;
}

std::string cut(std::string_view text, std::size_t width) {
  if (columns(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t end = 0;  // behind what fits, the last column being for the ellipsis
  for (std::size_t i = 0, count = 0; i < text.size(); end = i) {
    count += step(text, i);
    if (count >= width) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string markdown_row(std::vector<std::string> const& cells) {
  std::string line = "|";
  for (auto const& cell : cells) {
    line += ' ';
    for (char const c : cell) line += c == '|' ? std::string("\\|") : std::string(1, c);
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

NumberFormat::NumberFormat(double largest) {
  double const size = std::abs(largest);
  int const power = size > 0 && std::isfinite(size) ? static_cast<int>(std::floor(std::log10(size))) : 0;
  decimals_ = std::max(std::clamp(4 - power, 0, 4), std::min(2 - power, 12));
}

std::string NumberFormat::operator()(double x) const { return fmt::format("{:.{}f}", x, decimals_); }

std::string NumberFormat::interval(double low, double high) const {
  return fmt::format("[{:.{}f}, {:.{}f}]", low, decimals_, high, decimals_);
}

std::string NumberFormat::difference(double x, std::optional<double> const& half_width) const {
  std::string const mean = fmt::format("{:+.{}f}", x, decimals_);
  return half_width ? fmt::format("{} ± {:.{}f}", mean, *half_width, decimals_) : mean;
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
