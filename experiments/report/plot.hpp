#pragma once

#include <string>
#include <string_view>

#include "experiments/report/figure.hpp"

namespace heed {

/// A figure in gnuplot's language, without terminal and output.
struct Plot {
  std::string title = {};                      ///< for messages
  double width = Figure::width, height = 2.6;  ///< in inches, as printed
  std::string commands = {};
  bool pdf = true, png = false;  ///< to be rendered beside SVG
};
Plot plot_of(Figure const& figure, double width = Figure::width);

/// A text quoted for gnuplot, without special characters.
std::string gnuplot_text(std::string_view text);
/// The same for a tick's label, which gnuplot treats as a format.
std::string gnuplot_tick(std::string_view text);

/// Bytes in quotes, as gnuplot reads them.
std::string in_quotes(std::string_view bytes);

}  // namespace heed
