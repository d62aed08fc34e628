#include "experiments/config/table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "nn/files/number.hpp"
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

std::size_t table_width = whole_lines;

/// A text as lines of at most `width` columns, divided at blanks, within a word where it has to be.
std::vector<std::string_view> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    if (columns(line) > width) {
      std::size_t fits = 0, blank = 0;
      for (std::size_t i = 0, count = 0; count <= width; count += columns_of_next(line, i)) {
        fits = i;
        if (line[i] == ' ') blank = i;
      }
      line = line.substr(0, blank > 0 ? blank : fits);
    }
    lines.push_back(line);
    text.remove_prefix(line.size());
    if (text.starts_with(' ') || text.starts_with('\n')) text.remove_prefix(1);
  }
  return lines;
}

/// Where a column stands: on a row's first line, or on one of those below.
struct TablePlace {
  std::size_t column, line, begin, width;
};

/// Columns of these widths from left to right, on a new line where there is no room.
std::vector<TablePlace> places_of(std::vector<std::size_t> const& widths, std::size_t indent) {
  constexpr std::size_t sentence = 32, below = 4;  // columns that help needs beside its key; how much more to the right is what goes below
  std::vector<TablePlace> places;
  std::size_t line = 0, begin = indent;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] == 0) continue;
    bool const last = i + 1 == widths.size();
    if (!places.empty() && begin + (last ? std::min(widths[i], sentence) : widths[i]) > table_width) ++line, begin = indent + below;
    places.push_back({i, line, begin, std::min(widths[i], table_width - begin)});
    begin += places.back().width + 2;
  }
  return places;
}

/// "1.23e238" with so many digits behind the point.
std::string by_powers_of_ten(double size, int digits) {
  auto const text = fmt::format("{:.{}e}", size, digits);
  auto const e = text.find('e');
  return fmt::format("{}e{}", text.substr(0, e), std::atoi(text.c_str() + e + 1));  // without a plus, without zeros in front
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

std::string markdown_table(TableRows const& rows) {
  std::string text = markdown_row(rows.front()) + markdown_row(std::vector<std::string>(rows.front().size(), "---"));
  for (auto const& row : std::span(rows).subspan(1)) text += markdown_row(row);
  return text;
}

TableRows without_empty_columns(TableRows rows) {
  for (std::size_t k = rows.front().size(); k-- > 0;)
    if (std::ranges::all_of(std::span(rows).subspan(1), [&](auto const& row) { return row[k].empty(); }))
      for (auto& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(k));
  return rows;
}

std::string plural(std::size_t count, std::string_view what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

std::size_t columns_of(int descriptor) {
  if (::isatty(descriptor) == 0) return whole_lines;
  auto const* const asked = std::getenv("COLUMNS");
  auto const given = asked != nullptr ? parsed_number<std::size_t>(asked) : std::nullopt;
  winsize size{};
  std::size_t const own = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  return std::clamp<std::size_t>(given.value_or(own), 40, 200);
}

void set_table_width(std::size_t width) { table_width = width; }

std::string table(std::vector<std::vector<std::string>> const& rows, std::size_t indent, std::vector<std::size_t> const& most) {
  std::vector<std::size_t> widths;
  for (auto const& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], std::min(columns(row[i]), i < most.size() ? most[i] : whole_lines));
  }
  bool const whole = table_width == whole_lines;
  auto const places = places_of(widths, indent);
  std::string page;
  for (auto const& row : rows) {
    std::vector<std::string> lines(1);
    std::size_t first = 0, shift = 0;  // the line that a column begins on, and how far longer cells have moved it
    for (std::size_t i = 0; i < places.size(); ++i) {
      auto const& [column, line, begin, width] = places[i];
      if (i > 0 && places[i - 1].line != line) first = lines.size();
      if (column >= row.size() || row[column].empty()) continue;
      auto const parts = whole ? std::vector<std::string_view>{row[column]} : wrapped(row[column], width);
      lines.resize(std::max(lines.size(), first + parts.size()));
      for (std::size_t part = 0; part < parts.size(); ++part) {
        auto& text = lines[first + part];
        text += std::string(begin + shift - columns(text), ' ').append(parts[part]);
      }
      if (whole) shift += std::max(columns(row[column]), width) - width;
    }
    for (auto const& line : lines) page += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
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
  int digits = 2;
  while (digits > 0 && by_powers_of_ten(size, digits).size() > room) --digits;
  return sign + by_powers_of_ten(size, digits);
}

NumberFormat::NumberFormat(double largest) {
  double const size = std::abs(largest);
  int const power = size > 0 && std::isfinite(size) ? static_cast<int>(std::floor(std::log10(size))) : 0;
  decimals_ = std::max(std::clamp(4 - power, 0, 4), std::min(2 - power, 12));
}

double usual_size(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::ranges::sort(values, {}, [](double value) { return std::abs(value); });
  return values.empty() ? 0 : std::abs(values[(values.size() - 1) / 2]);
}

NumberFormat NumberFormat::of(std::vector<double> const& values) {
  double const usual = usual_size(values);
  double largest = 0;
  for (double const value : values)
    if (std::isfinite(value) && !(usual > 0 && std::abs(value) / usual > 1000)) largest = std::max(largest, std::abs(value));
  return NumberFormat(largest);
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

std::string indented(std::string lines) {
  for (std::size_t i = 0; i < lines.size(); i = std::min(lines.find('\n', i), lines.size() - 1) + 1) lines.insert(i, "  ");
  return lines;
}

}  // namespace heed
