#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/metric/statistics.hpp"
#include "experiments/report/gnuplot.hpp"

namespace heed {

// Small panels of measurements as points with intervals beside theory as lines.

/// What stands at one x: a measurement with its interval, and what theory says of it.
struct SeriesPoint {
  double x = 0;
  std::optional<double> y;
  double low = 0, high = 0;
  std::optional<double> theory;
};

/// A mean with its interval, joined to its neighbours by a line.
SeriesPoint joined_point(double x, Estimate const& found);

/// Points and a line of one look; `dashed`: a limit, in grey, that sets no range.
struct Series {
  std::string name;
  std::size_t look = 0;
  std::vector<SeriesPoint> points;
  bool dashed = false;
};

struct SeriesPanel {
  std::string title;
  std::vector<Series> series;
  bool log_y = false;
  double low = 0, high = 0;               ///< the y axis; equal: what the series need
  double floor = 0;                       ///< with log_y: nothing below is drawn, if it is not 0
  std::string behind = {};                ///< data blocks, for `beneath`
  std::vector<std::string> beneath = {};  ///< what else is plotted, behind the series
};

/// Panels `across` in a row with one x axis, if `log_x` a power of two at each tick or, if `ten`, of ten, and one legend of all names
/// above.
struct SeriesFigure {
  std::string name, title, caption, x;
  bool log_x = true, ten = false;
  std::size_t across = 2;
  std::vector<SeriesPanel> panels;
  bool further = false;
};
Figure figure_of(SeriesFigure const& figure);

}  // namespace heed
