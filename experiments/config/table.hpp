#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// How many columns a UTF-8 text takes on a terminal: its code points, but for those that combine with the one before.
std::size_t columns(std::string_view text);

/// The beginning of a UTF-8 text that fits so many columns, with "…" at its end if something is missing.
std::string cut(std::string_view text, std::size_t width);

/// Rows as lines with aligned columns, two blanks between them and before the first; a column that is empty everywhere is left out.
std::string table(std::vector<std::vector<std::string>> const& rows);

/// "| a | b |": a row of a table in Markdown; a bar inside a cell is no border.
std::string markdown_row(std::vector<std::string> const& cells);

/// A number in at most eight characters, its sign included (with `plus`, of positive ones too): with so many decimals, or with fewer where
/// it is large, or by powers of ten, as "1.23e238"; "∞" and "NaN".
std::string short_number(double x, int decimals, bool plus = false);

/// How numbers of one quantity are written beside each other: all with as many decimals, so that the largest has five figures. Four
/// decimals below 10, and more only where all are below 0.01. No number has more than eight characters.
class NumberFormat {
 public:
  explicit NumberFormat(double largest);
  /// For these: by the largest that is finite and at most a thousand times their (lower) median.
  static NumberFormat of(std::vector<double> values);
  std::string operator()(double x) const;                                           ///< 16.207
  std::string interval(double low, double high) const;                              ///< [13.112, 19.302]
  std::string difference(double x, std::optional<double> const& half_width) const;  ///< +1.291 ± 0.664

 private:
  int decimals_;
};

/// Every line two columns further right.
std::string indented(std::string const& lines);

}  // namespace heed
