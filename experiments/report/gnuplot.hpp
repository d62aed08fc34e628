#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/error.hpp"

namespace heed {

/// A figure, defined once: what gnuplot is told, but for terminal and output.
struct Figure {
  std::string name;     ///< of its files
  std::string title;    ///< a heading
  std::string caption;  ///< what is to be seen and how it was computed; the text for those who do not see it
  double height = 2.6;  ///< in inches, as printed
  std::string commands;
  bool further = false;                 ///< one that a page shows folded
  static constexpr double width = 5.5;  ///< a page's text
};

/// The same figure for the screen and for print.
struct Drawing {
  std::string svg, pdf;
  std::string png = {};  ///< of 300 dots an inch, if it was asked for
};

/// gnuplot was ended, for it took too long: no other figure is worth a try.
struct Hanging : Error {
  using Error::Error;
};

/// Draws figures; nothing if gnuplot is not installed. Equal commands make equal bytes. Throws Error with gnuplot's words if it refuses;
/// Hanging if it has not ended after `limit` (default: 30 s and 5 s a figure), Interrupted if one of the signals that are noted comes
/// before.
std::optional<std::vector<Drawing>> draw(std::vector<Figure> const& figures, bool png = false,
                                         std::optional<std::chrono::milliseconds> limit = {});

/// A text for gnuplot, in quotes inside which nothing has a meaning.
std::string gnuplot_text(std::string_view text);
/// The same for the name of a tick, which gnuplot takes for a format.
std::string gnuplot_tick(std::string_view text);

/// Any text, a metric's name for one, as the name of a figure's files.
std::string figure_name(std::string_view text);

/// Colours of figures: the palette of Okabe and Ito 2008, which colour-blind people tell apart, without its yellow; ink first.
std::string line_colour(std::size_t index);

/// The distance of about so many ticks, at most, over a range: 1, 2 or 5 times a power of ten.
double tick_step(double range, double count);

/// An SVG by gnuplot as part of a page: without its head, its ids made unique by a prefix, its colours those of the page (custom properties
/// --ink, --faint, --series1 …), with a name for screen readers.
std::string inlined(std::string svg, std::string const& prefix, std::string const& title, std::string const& caption);

/// Where the panels of a figure stand: equal frames in rows, from the upper left corner on. In inches.
struct PanelGrid {
  std::size_t count = 0, across = 1;  ///< panels; in a row
  double left = 0, gap = 0;           ///< from the figure's edge to the first column; between columns
  double width = 0, height = 0;       ///< of a frame
  double head = 0, foot = 0;          ///< above and below each frame, for its title and its axis
  double above = 0, below = 0;        ///< the first row, for a legend; the last, for an axis that all have
  int decimals = 4;                   ///< of margins, which gnuplot takes as shares of the figure

  /// How wide frames are that fill the figure between `left` and so much at its right.
  static double width_between(double left, double right, double gap, std::size_t across);
  std::size_t rows() const { return (count + across - 1) / across; }
  double figure_height() const { return above + static_cast<double>(rows()) * (height + head + foot) + below; }
  double left_of(std::size_t i) const { return left + static_cast<double>(i % across) * (width + gap); }
  double top_of(std::size_t i) const { return figure_height() - above - head - static_cast<double>(i / across) * (height + head + foot); }
  bool first_of_row(std::size_t i) const { return i % across == 0; }
  bool lowest(std::size_t i) const { return i + across >= count; }
  /// The frame's margins, for gnuplot.
  std::string place(std::size_t i) const;
};

/// For gnuplot, the margins of a frame at a place in inches from the lower left corner of a figure of this height.
std::string margins(double left, double right, double bottom, double top, double height, int decimals = 4);

}  // namespace heed
