#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "experiments/report/figure.hpp"

namespace heed {

/// A line of text in a figure, in inches from its lower left corner; `y` is its middle.
struct PlacedText {
  enum class Anchor { left, centre, right };  ///< where x is
  std::string text = {};
  double x = 0, y = 0;
  Anchor side = Anchor::left;
  bool upward = false;  ///< turned by 90°
  std::string colour = {};
};

/// A panel's frame, in inches from the figure's lower left corner, and its axes with as much text as there is room for.
struct PlacedPanel {
  double left = 0, right = 0, bottom = 0, top = 0;
  Axis x = {}, y = {};
  bool has_x = true, has_y = true;  ///< whether their ticks have labels
  int turn = 0;                     ///< degrees, of the labels of x
};

/// A colour scale's box, and the height of its panels' row.
struct PlacedScale {
  double left = 0, bottom = 0, height = 0;
};

/// The line, and the mark on its middle, before a name of the legend.
struct PlacedSample {
  double left = 0, right = 0, y = 0;
  LegendEntry entry = {};
};

/// Where everything in a figure stands, so that every text has room, and is shortened or wrapped where it would have none.
struct FigureLayout {
  double width = 0, height = 0;
  std::size_t across = 1;
  std::vector<PlacedPanel> panels = {};
  std::vector<PlacedText> texts = {};
  std::vector<PlacedScale> scales = {};
  std::vector<PlacedSample> samples = {};
};
FigureLayout layout_of(Figure const& figure, double width = Figure::width);

/// Whether ticks are words.
bool has_names(Axis const& axis);

/// Positions at least `gap` apart within [0, 1], in the order of `heights` and as close to them as possible: for labels beside a figure.
std::vector<double> spread(std::vector<double> heights, double gap);

/// The height of one frame with room for the names of so many curves beside it.
double height_for(std::size_t curves, double least = 2.0);

}  // namespace heed
