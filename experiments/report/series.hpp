#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/metric/statistics.hpp"
#include "experiments/report/figure.hpp"

namespace heed {

// Small panels that compare measurements (points with intervals) with theory (lines).

/// A measurement with its interval, and the theoretical value, at one x.
struct SeriesPoint {
  double x = 0;
  std::optional<double> y;
  double low = 0, high = 0;
  std::optional<double> theory;
};

/// A mean with its interval, connected to its neighbours by a line.
SeriesPoint joined_point(double x, Estimate const& found);

/// Points and a line in one style; `dashed`: a limit, in grey, that does not affect the range.
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
  double low = 0, high = 0;               ///< the y axis; equal: fitted to the series
  double floor = 0;                       ///< with log_y: lower limit, if not 0
  std::vector<FigureLayer> beneath = {};  ///< drawn behind the series
};

/// Panels, `across` per row, with a shared x axis (`log_x`: a tick per power of two or, with `ten`, of ten) and one legend above.
struct SeriesFigure {
  std::string name, title, caption, x;
  bool log_x = true, ten = false;
  std::size_t across = 2;
  std::vector<SeriesPanel> panels;
  bool further = false;
};
Figure figure_of(SeriesFigure const& figure);

}  // namespace heed
