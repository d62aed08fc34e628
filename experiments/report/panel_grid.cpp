#include "experiments/report/panel_grid.hpp"

#include <fmt/format.h>

#include "experiments/report/gnuplot.hpp"

namespace heed {

double PanelGrid::width_between(double left, double right, double gap, std::size_t across) {
  return (Figure::width - left - right - static_cast<double>(across - 1) * gap) / static_cast<double>(across);
}

std::string PanelGrid::place(std::size_t i) const {
  double const x = left_of(i), top = top_of(i);
  return margins(x, x + width, top - height, top, figure_height(), decimals);
}

std::string margins(double left, double right, double bottom, double top, double height, int decimals) {
  return fmt::format(
      "set lmargin at screen {0:.{4}f}\nset rmargin at screen {1:.{4}f}\nset bmargin at screen {2:.{4}f}\nset tmargin at screen "
      "{3:.{4}f}\n",
      left / Figure::width, right / Figure::width, bottom / height, top / height, decimals);
}

}  // namespace heed
