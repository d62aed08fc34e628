#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/error.hpp"
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

/// A figure rendered for screen and print.
struct Drawing {
  std::string svg, pdf;
  std::string png = {};     ///< 300 dots per inch, if requested
  std::string narrow = {};  ///< SVG for narrow screens, if requested
};
/// What a figure is rendered as, beside SVG and PDF.
enum class Beside { nothing, png, narrow };

/// gnuplot was killed after a timeout: further figures should not be tried.
struct Hanging : Error {
  using Error::Error;
};

/// Draws figures; nothing if gnuplot is not installed. Equal figures give equal bytes. Throws Error with gnuplot's message if it fails;
/// Hanging if it has not ended after `limit` (default: 30 s plus 5 s per plot); Interrupted on a handled signal.
std::optional<std::vector<Drawing>> draw(std::vector<Figure> const& figures, Beside beside = Beside::nothing);
std::optional<std::vector<Drawing>> draw_plots(std::vector<Plot> const& plots, std::optional<std::chrono::milliseconds> limit = {});

/// Draws figures into a page (.html) with each one's title, and on top the first one's caption, or `if_none`; or each into a file (.svg,
/// .pdf, .png): several into FILE-3.svg for the one named line3 … Throws Error if gnuplot is not installed or a file cannot be written.
void write_figures(std::filesystem::path const& file, std::vector<Figure> const& figures, std::string const& title,
                   std::string const& if_none = "");

/// A figure's pictures for inclusion in a page, for wide screens and for narrow ones: SVG without its header, with a prefix on its ids, the
/// page's colours (custom properties --ink, --faint, --series1 …), and a name for screen readers.
std::string inlined(Drawing const& drawing, std::string const& prefix, Figure const& figure);

}  // namespace heed
