#pragma once

#include <cstddef>
#include <string>

namespace heed {

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
