#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// Width of a UTF-8 text on a terminal, in columns: its code points without combining ones.
std::size_t columns(std::string_view text);

/// The beginning of a UTF-8 text that fits into `width` columns, ending in "…" if it was cut.
std::string cut(std::string_view text, std::size_t width);

/// A width that everything fits into: lines stay whole.
inline constexpr std::size_t whole_lines = std::size_t(-1);

/// Columns of what a descriptor leads to: a terminal's, or $COLUMNS, within 40 … 200; whole_lines for a pipe or a file.
std::size_t columns_of(int descriptor);

/// The width of tables from now on; whole_lines until then.
void set_table_width(std::size_t width);

using TableRows = std::vector<std::vector<std::string>>;

/// Rows as lines with aligned columns, separated by two blanks and preceded by `indent`; columns that are empty everywhere are left out. A
/// column is at most as wide as `most` says (by column; none: any width); longer cells of whole lines stand out of it. Columns that do not
/// fit into the width of tables go below their row, except that the last is wrapped where there is room for a sentence.
std::string table(TableRows const& rows, std::size_t indent = 2, std::vector<std::size_t> const& most = {});

/// Without the columns that are empty below their heads; all rows have as many.
TableRows without_empty_columns(TableRows rows);

/// "| a | b |": a row of a Markdown table; bars inside cells are escaped.
std::string markdown_row(std::vector<std::string> const& cells);
/// A whole one; its first row is the head.
std::string markdown_table(TableRows const& rows);

/// "1 seed", "2 seeds".
std::string plural(std::size_t count, std::string_view what);

/// A number in at most eight characters, sign included (`plus`: also of positive numbers): with `decimals` decimals, with fewer if it is
/// large, or in exponential form, "1.23e238"; "∞" and "NaN".
std::string short_number(double x, int decimals, bool plus = false);

/// The (lower) median of the sizes of those values that are finite; 0 without any.
double usual_size(std::vector<double> values);

/// A common format for numbers of one quantity: equal decimals, five figures for the largest; four decimals below 10, and more only if all
/// are below 0.01. No number has more than eight characters.
class NumberFormat {
 public:
  explicit NumberFormat(double largest);
  /// The format for these values, chosen by the largest one that is finite and at most a thousand times their (lower) median.
  static NumberFormat of(std::vector<double> const& values);
  std::string operator()(double x) const;                                           ///< 16.207
  std::string interval(double low, double high) const;                              ///< [13.112, 19.302]
  std::string difference(double x, std::optional<double> const& half_width) const;  ///< +1.291 ± 0.664

 private:
  int decimals_;
};

/// Puts `to` in the place of every `from`.
void replace_all(std::string& text, std::string_view from, std::string_view to);

/// Every line indented by two columns.
std::string indented(std::string lines);

}  // namespace heed
