// Figures in gnuplot's language, which no other file knows.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/table.hpp"
#include "experiments/report/gnuplot.hpp"
#include "experiments/report/layout.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

/// CurvePoint types: discs, squares, triangles up and down, diamonds, pentagons; as outlines one less.
int point_type(Look const& look) {
  static constexpr int types[] = {7, 5, 9, 11, 13, 15};
  return types[look.mark % std::size(types)] - (look.open ? 1 : 0);
}

bool has_intervals(Curve const& points) {
  return std::ranges::any_of(points, [](CurvePoint const& point) { return point.low < point.high; });
}

/// How a layer is drawn: the columns of its data that are used, and the style.
std::string drawn_as(FigureLayer const& layer) {
  auto const& look = layer.look;
  auto const line = fmt::format("lc rgb '{}' lw {} dt {}", look.colour, look.width, look.dash);
  auto const mark = fmt::format("pt {} ps {}", point_type(look), look.size);
  auto const dots = fmt::format("{} lc rgb '{}' lw {}", mark, look.colour, look.width);
  auto const bars = (has_intervals(layer.points) ? "1:2:3:4 with yerrorbars " : "1:2 with points ") + dots;
  switch (layer.as) {
    case As::band:
      return fmt::format("1:3:4 with filledcurves fc rgb '{}' fs transparent solid 0.18 noborder", look.colour);
    case As::line:
      return "1:2 with lines " + line;
    case As::dots:
      return "1:2 with points " + dots;
    case As::joined_dots:
      return fmt::format("1:2 with linespoints {} {}", line, mark);
    case As::intervals:
      return bars;
    case As::joined_intervals:  // two plots of the same data: bars do not have the line's dashes
      return fmt::format("1:2 with lines {}, '' using {}", line, bars);
    case As::intervals_across:
      return "1:2:3:4 with xerrorbars " + dots;
  }
  return "";
}

/// `least`: where an interval that reaches further down ends, so that it has a place on a logarithmic axis.
std::string data_of(Curve const& points, double least) {
  std::string text;
  for (auto const& [x, y, low, high] : points)
    text += std::isfinite(y) ? fmt::format("{:.8g} {:.8g} {:.8g} {:.8g}\n", x, y, std::max(low, least), high) : "\n";
  return text;
}

std::string data_of(Cells const& cells) {
  std::string text;
  for (std::size_t i = 0; i < cells.pixels.size(); ++i)
    text += fmt::format("{} {} {:.0f}\n", i % cells.columns, i / cells.columns, fmt::join(cells.pixels[i], " "));
  for (std::size_t i = 0; i < cells.values.size(); ++i) {
    text += std::isfinite(cells.values[i]) ? fmt::format("{:.5g}", cells.values[i]) : "NaN";
    text += (i + 1) % cells.columns > 0 ? " " : cells.columns > 1 ? "\n" : " NaN\n";
  }
  // An image has two rows and two columns at least; the further ones are blank, beyond the axes.
  if (cells.values.size() == cells.columns)
    text += fmt::format("{}\n", fmt::join(std::vector<std::string>(std::max<std::size_t>(cells.columns, 2), "NaN"), " "));
  return text;
}

std::string drawn_as(Cells const& cells) {
  if (!cells.pixels.empty()) return "1:2:3:4:5 with rgbimage";
  return fmt::format("({:.8g} + $1 * {:.8g}):2:3 matrix with image{}", cells.first, cells.step, cells.sharp ? " pixels" : "");
}

/// Writes one figure.
class Printer {
 public:
  Printer(Figure const& figure, double width) : figure_(figure), layout_(layout_of(figure, width)) {}

  Plot plot() {
    text_ = "set key off\nset pointintervalbox 0.01\nset multiplot\n";  // a mark clears no room around itself: intervals may be shorter
    for (std::size_t i = 0; i < layout_.panels.size(); ++i) panel(i);
    text_ += "unset multiplot\n";
    return {.title = figure_.title, .width = layout_.width, .height = layout_.height, .commands = std::move(text_)};
  }

 private:
  template <class... Arguments>
  void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...) + '\n';
  }

  std::string screen(double x, double y) const {
    return fmt::format("screen {:.5f}, screen {:.5f}", x / layout_.width, y / layout_.height);
  }

  void panel(std::size_t i) {
    auto const& panel = figure_.panels[i];
    auto const& placed = layout_.panels[i];
    text_ += "unset label\nunset arrow\nunset object\nunset x2tics\n";
    frame(panel, placed);
    axis('x', placed.x, placed);
    axis('y', placed.y, placed);
    if (i == 0) around();
    colours(i);
    for (auto const& guide : panel.guides) this->guide(guide);
    for (auto const& box : panel.boxes) this->box(box);
    for (auto const& note : panel.notes) this->note(note);
    for (auto const& [y, to_right, colour] : panel.arrows)
      say("set arrow from graph {}, first {} to graph {}, first {} filled size screen 0.012,20 lc rgb '{}' lw 1.6", to_right ? 0.94 : 0.06,
          y, to_right ? 1 : 0, y, colour);
    layers(i);
  }

  /// Margins, border and grid: of rows of names, cells, curves.
  void frame(Panel const& panel, PlacedPanel const& placed) {
    say("set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\nset bmargin at screen {:.5f}\nset tmargin at screen {:.5f}",
        placed.left / layout_.width, placed.right / layout_.width, placed.bottom / layout_.height, placed.top / layout_.height);
    if (panel.cells) return say("set border 15 lw 0.6 lc rgb 'black'\nset tics nomirror out scale 0.4\nunset grid");
    bool const rows = !panel.columns.empty();
    say("set border {} lw 0.8 lc rgb 'black'\nset tics nomirror out scale 0.5\nunset grid\nset grid {} lc rgb '{}' lt 1 lw 0.5",
        rows ? 1 : 3, rows ? 'x' : 'y', faint_colour);
  }

  void axis(char which, Axis const& axis, PlacedPanel const& placed) {
    bool const labelled = which == 'x' ? placed.has_x : placed.has_y;
    say("{} logscale {}\nset {}range [{:.8g}:{:.8g}]\nset format {} '{}'", axis.log ? "set" : "unset", which, which, axis.low, axis.high,
        which, labelled ? "%g" : "");
    if (axis.ticks.empty() && axis.step > 0) return say("set {}tics norotate {:.8g}", which, axis.step);
    if (axis.ticks.empty() || (!labelled && has_names(axis))) return say("unset {}tics", which);
    std::vector<std::string> ticks;
    for (auto const& [at, label] : axis.ticks) ticks.push_back(fmt::format("{} {:.8g}", gnuplot_tick(labelled ? label : ""), at));
    char const* const turned = placed.turn == 0 || which == 'y' ? "norotate" : axis.above ? "rotate by 55" : "rotate by 25 right";
    if (axis.above) say("unset xtics\nset x2range [{:.8g}:{:.8g}]", axis.low, axis.high);
    say("set {}tics {} {} ({})", axis.above ? "x2" : std::string(1, which),
        axis.above || (which == 'y' && has_names(axis)) ? "scale 0" : "", turned, fmt::join(ticks, ", "));
  }

  /// What stands outside of the frames, once.
  void around() {
    for (auto const& [text, x, y, side, upward, colour] : layout_.texts) {
      static constexpr char const* sides[] = {"left", "center", "right"};
      say("set label {} at {} {}{}{}", gnuplot_text(text), screen(x, y), sides[static_cast<std::size_t>(side)],
          upward ? " rotate by 90" : "", colour.empty() ? "" : fmt::format(" tc rgb '{}'", colour));
    }
    for (auto const& [left, right, y, entry] : layout_.samples) {
      auto const& look = entry.look;
      if (entry.as != As::dots && entry.as != As::intervals)
        say("set arrow from {} to {} nohead lc rgb '{}' lw {} dt {}", screen(left, y), screen(right, y), look.colour, look.width,
            look.dash);
      if (entry.as != As::line)
        say("set label '' at {} point pt {} ps {} lc rgb '{}'", screen((left + right) / 2, y), point_type(look), look.size, look.colour);
    }
  }

  /// The scale of a panel's cells, and its box beside the first panel that it is of.
  void colours(std::size_t i) {
    if (figure_.scales.empty()) return;
    std::size_t const row = i / layout_.across, k = std::min(row, figure_.scales.size() - 1);
    auto const& scale = figure_.scales[k];
    std::vector<std::string> colours;
    for (std::size_t c = 0; c < scale.colours.size(); ++c) colours.push_back(fmt::format("{} '{}'", c, scale.colours[c]));
    say("set palette defined ({})\nset cbrange [{:.10g}:{:.10g}]\n{} logscale cb\nset format cb '%g'", fmt::join(colours, ", "), scale.low,
        scale.high, scale.log ? "set" : "unset");
    bool const first = k * layout_.across == i;
    if (!first || !scale.shown || k >= layout_.scales.size()) return say("unset colorbox");
    auto const& placed = layout_.scales[k];
    say("set colorbox user origin {} size screen {:.5f}, screen {:.5f} noborder", screen(placed.left, placed.bottom), 0.12 / layout_.width,
        placed.height / layout_.height);
    say("set cbtics scale 0.4 {}", scale.log ? "autofreq" : fmt::format("{:.6g}", tick_step(scale.high - scale.low, placed.height / 0.16)));
  }

  void guide(Guide const& guide) {
    auto const ends = guide.upright ? fmt::format("first {0:.8g}, graph 0 to first {0:.8g}, graph 1", guide.at)
                                    : fmt::format("graph 0, first {0:.8g} to graph 1, first {0:.8g}", guide.at);
    // Not the border's width: gnuplot would draw both as one line, without dashes.
    say("set arrow from {} nohead lc rgb '{}' lw 0.9 dt {}", ends, guide.colour, guide.dash);
  }

  void box(Box const& box) {
    auto const corner = [&](bool low) {
      auto const side = [&](Range const& range) {
        double const value = low ? range.low : range.high;
        return std::isfinite(value) ? fmt::format("first {:.8g}", value) : fmt::format("graph {}", low ? 0 : 1);
      };
      return side(box.x) + ", " + side(box.y);
    };
    say("set object rectangle from {} to {} {}", corner(true), corner(false),
        box.filled ? fmt::format("behind fc rgb '{}' fs transparent solid 0.5 noborder", box.colour)
                   : fmt::format("front fs empty border lc rgb '{}' lw 1.5", box.colour));
  }

  void note(Note const& note) {
    char const* const in = note.of_frame ? "graph" : "first";
    say("set label {0} at {1} {2:.8g}, {1} {3:.8g} {4} front{5}", gnuplot_text(note.text), in, note.x, note.y,
        note.centred ? "center" : "left", note.colour.empty() ? "" : fmt::format(" tc rgb '{}'", note.colour));
  }

  /// Data blocks, and what is plotted of them.
  void layers(std::size_t i) {
    auto const& panel = figure_.panels[i];
    std::vector<std::string> parts;
    auto const add = [&](std::string const& data, std::string const& style) {
      if (data.empty()) return;
      auto const name = fmt::format("$d{}_{}", i, parts.size());
      text_ += fmt::format("{} << EOD\n{}EOD\n", name, data);
      parts.push_back(fmt::format("{} using {}", name, style));
    };
    if (panel.cells) add(data_of(*panel.cells), drawn_as(*panel.cells));
    for (auto const& layer : panel.layers) add(data_of(layer.points, panel.y.log ? panel.y.low / 1e3 : -INFINITY), drawn_as(layer));
    if (parts.empty()) parts.emplace_back("NaN");
    say("plot {}", fmt::join(parts, ", \\\n  "));
  }

  Figure const& figure_;
  FigureLayout layout_;
  std::string text_;
};

}  // namespace

Plot plot_of(Figure const& figure, double width) { return Printer(figure, width).plot(); }

std::string in_quotes(std::string_view bytes) {
  // What has a meaning inside of quotes is written as a number; inside of single quotes, gnuplot cannot read a text that begins with one.
  std::string result = "\"";
  for (char const c : bytes) {
    if (std::string_view("\"\\`'@").find(c) != std::string_view::npos || static_cast<unsigned char>(c) < ' ')
      result += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result + '"';
}

std::string gnuplot_text(std::string_view text) {
  auto visible = isolated(text);
  for (char& c : visible) c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  for (char const* none_of_xml : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) replace_all(visible, none_of_xml, "\uFFFD");  // U+FFFE, U+FFFF
  return in_quotes(visible);
}

std::string gnuplot_tick(std::string_view text) {
  std::string format(text);
  replace_all(format, "%", "%%");
  return gnuplot_text(format);
}

}  // namespace heed
