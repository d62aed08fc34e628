#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/error.hpp"

namespace heed {

/// A figure: gnuplot commands without terminal and output.
struct Figure {
  std::string name;     ///< of its files
  std::string title;    ///< a heading
  std::string caption;  ///< what it shows and how it was computed; also the text for screen readers
  double height = 2.6;  ///< in inches, as printed
  std::string commands;
  bool further = false;                 ///< collapsed at first on a page
  static constexpr double width = 5.5;  ///< a page's text
};

/// A figure rendered for screen and print.
struct Drawing {
  std::string svg, pdf;
  std::string png = {};  ///< 300 dots per inch, if requested
};

/// gnuplot was killed after a timeout: further figures should not be tried.
struct Hanging : Error {
  using Error::Error;
};

/// Draws figures; nothing if gnuplot is not installed. Equal commands give equal bytes. Throws Error with gnuplot's message if it fails;
/// Hanging if it has not ended after `limit` (default: 30 s plus 5 s per figure); Interrupted on a handled signal.
std::optional<std::vector<Drawing>> draw(std::vector<Figure> const& figures, bool png = false,
                                         std::optional<std::chrono::milliseconds> limit = {});

/// A text quoted for gnuplot, without special characters.
std::string gnuplot_text(std::string_view text);
/// The same for a tick's label, which gnuplot treats as a format.
std::string gnuplot_tick(std::string_view text);

/// Any text, such as a metric's name, as a file name for a figure.
std::string figure_name(std::string_view text);

/// Colours of figures: the colour-blind-safe palette of Okabe and Ito 2008 without its yellow; text colour first.
std::string line_colour(std::size_t index);

/// The distance of ticks, at most about `count` over a range: 1, 2 or 5 times a power of ten.
double tick_step(double range, double count);

/// A gnuplot SVG for inclusion in a page: without its header, with a prefix on its ids, the page's colours (custom properties --ink,
/// --faint, --series1 …), and a name for screen readers.
std::string inlined(std::string svg, std::string const& prefix, std::string const& title, std::string const& caption);

/// Layout of a figure's panels: equal frames in rows, from the upper left corner. In inches.
struct PanelGrid {
  std::size_t count = 0, across = 1;  ///< number of panels; panels per row
  double left = 0, gap = 0;           ///< from the figure's edge to the first column; between columns
  double width = 0, height = 0;       ///< of a frame
  double head = 0, foot = 0;          ///< above and below each frame, for its title and its axis
  double above = 0, below = 0;        ///< above the first row, for a legend; below the last, for a shared axis
  int decimals = 4;                   ///< of margins, which gnuplot takes as fractions of the figure

  /// The width of frames that fill the figure between `left` and the margin `right`.
  static double width_between(double left, double right, double gap, std::size_t across);
  std::size_t rows() const { return (count + across - 1) / across; }
  double figure_height() const { return above + static_cast<double>(rows()) * (height + head + foot) + below; }
  double left_of(std::size_t i) const { return left + static_cast<double>(i % across) * (width + gap); }
  double top_of(std::size_t i) const { return figure_height() - above - head - static_cast<double>(i / across) * (height + head + foot); }
  bool first_of_row(std::size_t i) const { return i % across == 0; }
  bool lowest(std::size_t i) const { return i + across >= count; }
  /// The margins of frame i as gnuplot commands.
  std::string place(std::size_t i) const;
};

/// gnuplot commands for the margins of a frame at a position in inches from the lower left corner of a figure of this height.
std::string margins(double left, double right, double bottom, double top, double height, int decimals = 4);

}  // namespace heed
