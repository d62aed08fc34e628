#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/index.hpp"

namespace heed {

// A figure as data: what it shows. layout.hpp says where everything stands; plot.cpp alone writes it down for the program that draws.

/// A value at x with its interval.
struct CurvePoint {
  double x = 0, y = 0, low = 0, high = 0;
  static CurvePoint bare(double x, double y) { return {x, y, y, y}; }
};
using Curve = std::vector<CurvePoint>;

/// A range of values on an axis; empty at first.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void include(double value);
  void include(CurvePoint const& point);
  /// Extends both ends by this fraction of the range; of one value, by this fraction of it. 0 alone is taken as 0 to 1.
  void widen(double share);
  bool is_empty() const { return !(low < high); }
  bool holds(double value) const { return value >= low && value <= high; }
};

/// Colours of figures: the colour-blind-safe palette of Okabe and Ito 2008 without its yellow; text colour first.
inline constexpr std::size_t line_colours = 7;
std::string line_colour(std::size_t index);
inline constexpr char const* limit_colour = "#808080";  ///< of what is only to compare with
inline constexpr char const* faint_colour = "#D9D9D9";  ///< of grids and of what is behind

/// What a layer is drawn with. Dash pattern 1 is solid; marks are discs, squares, triangles, …
struct Look {
  std::string colour = {};
  std::size_t dash = 1, mark = 0;
  double width = 1.3, size = 0.5;  ///< of lines; of marks
  bool open = false;               ///< marks as outlines
};
/// Colour, dash and mark of the lines of one key's values; the same with a solid line, for measurements beside a theory
/// (from the eighth on with dashes, as colours repeat).
Look look_of(std::size_t index);
Look solid_look(std::size_t index);
/// Of a curve that is only to compare with: dashed and grey.
Look limit_look();

/// How points are drawn. Intervals lie upright, or across: then along x.
enum class As { line, band, dots, joined_dots, intervals, joined_intervals, intervals_across };

/// Points that are drawn alike. A line has a gap where y is not finite.
struct FigureLayer {
  As as = As::line;
  Curve points = {};
  Look look = {};
  std::string name = {};  ///< of a curve: in a legend, or beside its end
};

/// Coloured cells, row by row, the first row at y = 0; one that is not finite is blank.
struct Cells {
  std::size_t columns = 0;
  std::vector<double> values = {};                 ///< on the colour scale
  double first = 0, step = 1;                      ///< x of the first column; between columns
  bool sharp = false;                              ///< each a shape of its own, sharp at any size: for few cells
  std::vector<std::array<double, 3>> pixels = {};  ///< instead of values: red, green and blue up to 255
};

struct Tick {
  double at = 0;
  std::string text = {};
};

/// An axis from low to high, from high to low if low is the larger. Without step and ticks it has no marks.
struct Axis {
  std::string name = {};
  double low = 0, high = 1;
  double step = 0;                  ///< ticks at its multiples
  std::vector<Tick> ticks = {};     ///< or these
  bool log = false, above = false;  ///< logarithmic; above the frame, its labels turned
};
/// An axis over a range, with at most about `count` ticks.
Axis axis_over(Range const& range, std::string name = "", double count = 5);
/// A logarithmic axis: ticks at powers of ten, with 2 and 5 times them where these are few, or at round numbers within one.
Axis log_axis(Range const& range);
/// The y axis of points and their intervals, without those of limit_look(); a logarithmic one has room for what is above 0.
Axis axis_over(std::vector<FigureLayer> const& layers, bool log = false);
/// An axis with a tick at each of some numbers: logarithmic if they reach far.
Axis axis_of_values(std::set<double> const& values, std::string name);
/// An axis of names at 0, 1, …, with some room at both ends; of rows: from above.
Axis axis_of_names(std::vector<std::string> const& names, std::string name = "", double beyond = 0.5);
Axis axis_of_rows(std::vector<std::string> const& names, std::string name = "");

/// A line across the frame, at a value of y or, upright, of x.
struct Guide {
  double at = 0;
  bool upright = false;
  std::string colour = "black";
  std::size_t dash = 1;
};

/// A rectangle in values of the axes: filled behind everything, or a frame in front. Infinite: to the edge.
struct Box {
  Range x = {}, y = {};
  std::string colour = faint_colour;
  bool filled = true;
};

/// A text, or an arrow to the left or right edge, within the frame: in values of the axes, or (`of_frame`) in shares of the frame.
struct Note {
  std::string text = {};
  double x = 0, y = 0;
  std::string colour = {};
  bool centred = false, of_frame = false;
};
struct Arrow {
  double y = 0;
  bool to_right = true;
  std::string colour = {};
};

/// The name of a curve, right of the frame where it ends, and what follows it, which is never shortened.
struct EndLabel {
  std::string name = {}, more = {};
  double y = 0;  ///< beyond the axis, or not finite: at its end
  std::string colour = {};
};

/// Texts right of the frame, one beside each tick of y.
struct TextColumn {
  std::string head = {};
  std::vector<std::string> texts = {};
};

struct Panel {
  std::string title = {};
  Axis x = {}, y = {};
  std::vector<FigureLayer> layers = {};  ///< the first lies below the others
  std::optional<Cells> cells = {};
  std::vector<Guide> guides = {};
  std::vector<Box> boxes = {};
  std::vector<Note> notes = {};
  std::vector<Arrow> arrows = {};
  std::vector<EndLabel> ends = {};
  std::vector<TextColumn> columns = {};  ///< with these, a panel is rows: its y axis has names and no line
};

/// A scale from the first colour to the last.
struct ColourScale {
  std::vector<std::string> colours = {};
  double low = 0, high = 1;
  bool log = false;
  bool shown = true;      ///< as a box beside the frames
  std::string name = {};  ///< below the box
};
/// Readable with red-green colour blindness (Nuñez et al. 2018).
std::vector<std::string> cividis();

struct LegendEntry {
  std::string name = {};
  Look look = {};
  As as = As::line;
};

struct Figure {
  std::string name = {};     ///< of its files
  std::string title = {};    ///< a heading
  std::string caption = {};  ///< what it shows and how it was computed; also the text for screen readers
  std::vector<Panel> panels = {};
  std::size_t across = 1;                    ///< panels per row
  std::vector<LegendEntry> legend = {};      ///< above all panels
  std::vector<ColourScale> scales = {};      ///< of cells: one for all rows of panels, or one for each
  bool shared_x = false, shared_y = false;   ///< only the lowest panels, the first of each row have labels
  bool centred = false;                      ///< titles over the middle of their frames
  double frame_width = 0, frame_height = 0;  ///< in inches, at most; 0: as wide as there is room; `shape` times the width
  double shape = 0;                          ///< 0: about 0.6
  bool further = false;                      ///< collapsed at first on a page
  static constexpr double width = 5.5;       ///< inches: a page's text
  static constexpr double narrow = 3.2;      ///< and that of a telephone
};

/// How ticks of x stand: evenly, or at powers of two or of ten on a logarithmic axis.
enum class Ticks { even, twos, tens };
/// Gives all panels one x axis over their points, logarithmic axes of y one way to write numbers, and the figure a legend of the names of
/// their layers.
void share_x(Figure& figure, std::string const& name, Ticks ticks);

/// Any text, such as a metric's name, as a file name for a figure.
std::string figure_name(std::string_view text);

/// The distance of ticks, at most about `count` over a range: 1, 2 or 5 times a power of ten.
double tick_step(double range, double count);

/// Names in at most so many columns each: their beginnings or, where two names would become the same, shortened in the middle, and
/// numbered if even these are the same.
std::vector<std::string> shortened(std::vector<std::string> const& names, std::size_t width);

/// A text in lines of at most so many columns, broken behind its first line end, blanks, and marks that no digit
/// follows.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

}  // namespace heed
