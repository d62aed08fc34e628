#include "experiments/report/layout.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "experiments/config/table.hpp"
#include "experiments/report/curve.hpp"

namespace heed {

namespace {

// In inches. A page's font is unknown: this is the mean width of a character of a wide one (DejaVu Sans).
constexpr double character = 0.066, text_line = 0.125, edge = 0.04;
constexpr double between_ticks = 0.11;    ///< of labels below each other
constexpr double shared_gap = 0.25;       ///< between frames with one axis, whose labels at both ends must not touch
constexpr double scale_room = 0.75;       ///< for a colour box and its numbers
constexpr double most_beside = 1.75;      ///< for the names of curves
constexpr double most_before = 1.95;      ///< for those of rows
constexpr double least_frame = 0.8;       ///< below, fewer panels stand in a row
constexpr double beyond_frame = 0.35;     ///< how much longer than its frame a name of the y axis may be
constexpr std::size_t longest_tick = 18;  ///< columns

double text_width(std::string_view text) { return character * static_cast<double>(columns(text)); }
std::size_t columns_in(double inches) { return static_cast<std::size_t>(std::max(1.0, inches / character)); }

std::vector<std::string> texts_of(std::vector<Tick> const& ticks) {
  std::vector<std::string> texts;
  for (auto const& tick : ticks) texts.push_back(tick.text);
  return texts;
}

/// The widest label of an axis.
double label_width(Axis const& axis) {
  double widest = 0;
  for (auto const& tick : axis.ticks) widest = std::max(widest, text_width(tick.text));
  if (axis.step > 0)
    for (double k = std::ceil(axis.low / axis.step); k * axis.step <= axis.high; ++k)
      widest = std::max(widest, 1.08 * text_width(fmt::format("{:g}", k * axis.step)));
  return widest;
}

void shorten(std::vector<Tick>& ticks, std::size_t width) {
  auto const labels = shortened(texts_of(ticks), width);
  for (std::size_t i = 0; i < ticks.size(); ++i) ticks[i].text = labels[i];
}

/// Every n-th tick, so that labels of this size do not touch.
void thin(std::vector<Tick>& ticks, double length, double size) {
  auto const most = static_cast<std::size_t>(std::max(1.0, length / size));
  std::size_t const every = (ticks.size() + most - 1) / most;
  for (std::size_t i = 0; every > 1 && i < ticks.size(); ++i)
    if (i % every != 0) ticks[i].text.clear();
}

/// Arranges one figure, in steps: columns of frames, texts of the axes, rows of frames, and what stands around them.
class Arrangement {
 public:
  Arrangement(Figure const& figure, double width) : figure_(figure) {
    made_.width = width;
    made_.across = std::clamp<std::size_t>(figure.across, 1, std::max<std::size_t>(1, figure.panels.size()));
    for (auto const& panel : figure.panels) made_.panels.push_back({.x = panel.x, .y = panel.y});
    shown_columns_ = figure.panels.empty() ? 0 : figure.panels.front().columns.size();
  }

  FigureLayout made() {
    find_columns();
    while (frame_ < least_frame && (made_.across > 1 || shown_columns_ > 1)) {
      made_.across > 1 ? --made_.across : --shown_columns_;
      find_columns();
    }
    find_name_lines();
    fit_ticks();
    find_rows();
    put_titles();
    put_names_of_axes();
    for (std::size_t i = 0; i < made_.panels.size(); ++i) put_beside(figure_.panels[i], made_.panels[i]);
    put_scales();
    put_legend();
    return std::move(made_);
  }

 private:
  std::size_t rows() const { return (figure_.panels.size() + made_.across - 1) / made_.across; }
  bool has_box() const { return !figure_.scales.empty() && figure_.scales.front().shown; }
  /// One name for all rows.
  bool one_y_name() const { return figure_.shared_y && rows() > 1; }

  // ---- columns

  double before_frame(std::size_t i) const {
    auto const& panel = figure_.panels[i];
    auto const& placed = made_.panels[i];
    if (!placed.has_y) return i % made_.across == 0 ? edge : placed.x.step > 0 || !placed.x.ticks.empty() ? shared_gap : 0.12;
    double const labels = std::min(label_width(placed.y), most_before);
    return edge + 0.08 + labels + (panel.y.name.empty() ? 0 : 0.04 + text_line * static_cast<double>(name_lines_)) +
           (i % made_.across == 0 ? 0 : 0.08);
  }

  double behind_frame(std::size_t i) const {
    auto const& panel = figure_.panels[i];
    double room = (i + 1) % made_.across == 0 ? 0.12 : 0;
    if (room > 0 && has_box()) room = scale_room;
    for (auto const& end : panel.ends) room = std::max(room, std::min(made_.width < 4 ? 0.75 * most_beside : most_beside, end_width(end)));
    double columns = 0.1;
    for (std::size_t k = 0; k < shown_columns_; ++k) columns += column_width(panel.columns[k]);
    return std::max(room, shown_columns_ > 0 ? columns : 0);
  }

  static double end_width(EndLabel const& end) { return 0.1 + text_width(end.name) + text_width(end.more) + edge; }
  static double column_width(TextColumn const& column) {
    double widest = text_width(column.head);
    for (auto const& text : column.texts) widest = std::max(widest, text_width(text));
    return widest + 0.14;
  }

  /// The frames' width, and where columns begin.
  void find_columns() {
    std::size_t const across = made_.across;
    before_.assign(across, edge), behind_.assign(across, 0);
    for (std::size_t i = 0; i < figure_.panels.size(); ++i) {
      auto& placed = made_.panels[i];
      placed.has_x = !figure_.shared_x || i + across >= figure_.panels.size();
      placed.has_y = !figure_.shared_y || i % across == 0;
      if (!figure_.panels[i].columns.empty()) shorten(placed.y.ticks, columns_in(most_before * (made_.width < 4 ? 0.5 : 1)));
      before_[i % across] = std::max(before_[i % across], before_frame(i));
      behind_[i % across] = std::max(behind_[i % across], behind_frame(i));
    }
    double const room =
        made_.width - std::accumulate(before_.begin(), before_.end(), 0.0) - std::accumulate(behind_.begin(), behind_.end(), 0.0);
    frame_ = room / static_cast<double>(across);
    if (figure_.frame_width > 0) frame_ = std::min(frame_, figure_.frame_width);
    frame_ = std::max(frame_, 0.3);
    high_ = figure_.frame_height > 0 ? figure_.frame_height
            : figure_.shape > 0      ? figure_.shape * frame_
                                     : std::clamp(0.62 * frame_, 1.1, 1.8);
  }

  /// A name of the y axis that is longer than its frame takes two lines.
  void find_name_lines() {
    double const length = one_y_name() ? high_ * static_cast<double>(rows()) : high_;
    for (auto const& panel : figure_.panels)
      if (wrapped(panel.y.name, columns_in(length + beyond_frame)).size() > 1) name_lines_ = 2;
    if (name_lines_ > 1) find_columns();
  }

  double left_of(std::size_t column) const {
    double left = before_[0];
    for (std::size_t c = 1; c <= column; ++c) left += frame_ + behind_[c - 1] + before_[c];
    return left;
  }

  // ---- texts of the axes

  /// Labels below a frame stand beside each other; turned, or above, each needs the height of a line.
  void fit_ticks() {
    for (auto& placed : made_.panels) {
      auto& x = placed.x;
      thin(placed.y.ticks, high_, between_ticks);
      if (x.step > 0) x.step = std::max(x.step, tick_step(x.high - x.low, std::max(1.0, frame_ / (label_width(x) + 0.06))));
      if (x.ticks.empty()) continue;
      double const apart = frame_ / static_cast<double>(x.ticks.size());
      bool const words = x.ticks.front().text.find_first_not_of("0123456789.e+-") != std::string::npos;
      shorten(x.ticks, longest_tick);
      if (x.above)
        placed.turn = 55;
      else if (words && label_width(x) > 0.95 * apart)
        placed.turn = 25;
      if (placed.turn == 25) shorten(x.ticks, std::min(longest_tick, columns_in((before_[0] + apart / 2 - edge) / 0.91)));
      thin(x.ticks, frame_, placed.turn > 0 ? between_ticks * 1.1 : label_width(x) + 0.06);
    }
  }

  /// The height of x's labels.
  static double label_height(PlacedPanel const& placed) {
    if (placed.x.ticks.empty() && !(placed.x.step > 0)) return 0.02;
    if (placed.turn == 0) return 0.26;
    return 0.12 + label_width(placed.x) * std::sin(placed.turn * 3.1416 / 180);
  }

  // ---- rows

  std::vector<std::string> title_lines(std::size_t i) const {
    double const room = (i + 1) % made_.across == 0 && !has_box() ? made_.width - left_of(i % made_.across) - edge : frame_;
    std::vector<std::string> lines;
    for (std::string_view rest = titles_[i]; !rest.empty();) {
      auto const end = std::min(rest.find('\n'), rest.size());
      for (auto& line : wrapped(rest.substr(0, end), columns_in(room))) lines.push_back(std::move(line));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return lines;
  }

  double head_of(std::size_t i) const {
    auto const& placed = made_.panels[i];
    bool const has_heads = shown_columns_ > 0 && !figure_.panels[i].columns.front().head.empty();
    double const lines = static_cast<double>(std::max<std::size_t>(title_lines(i).size(), has_heads ? 1 : 0));
    return (lines > 0 ? 0.09 + text_line * lines : 0.1) + (placed.x.above ? label_height(placed) : 0);
  }

  double foot_of(std::size_t i) const {
    auto const& placed = made_.panels[i];
    if (placed.x.above) return 0.06;
    return placed.has_x ? label_height(placed) : 0.05;
  }

  /// Panels from above, below the legend; then the name of the x axis.
  void find_rows() {
    constexpr std::size_t most_lines = 3;
    for (auto const& panel : figure_.panels) titles_.push_back(panel.title);
    titles_ = shortened(titles_, most_lines * columns_in(frame_) - 4);
    double down = legend_height();
    std::vector<double> tops;
    for (std::size_t row = 0; row < rows(); ++row) {
      double head = 0, foot = 0;
      for (std::size_t i = row * made_.across; i < std::min((row + 1) * made_.across, made_.panels.size()); ++i)
        head = std::max(head, head_of(i)), foot = std::max(foot, foot_of(i) + x_name_height(i));
      tops.push_back(down + head);
      down += head + high_ + foot;
    }
    made_.height = down + edge;
    for (std::size_t i = 0; i < made_.panels.size(); ++i) {
      auto& placed = made_.panels[i];
      placed.left = left_of(i % made_.across);
      placed.right = placed.left + frame_;
      placed.top = made_.height - tops[i / made_.across];
      placed.bottom = placed.top - high_;
    }
  }

  // ---- texts

  void put(std::string text, double x, double y, PlacedText::Anchor side, bool upward = false, std::string colour = {}) {
    if (!text.empty()) made_.texts.push_back({std::move(text), x, y, side, upward, std::move(colour)});
  }

  void put_titles() {
    for (std::size_t i = 0; i < made_.panels.size(); ++i) {
      auto const& placed = made_.panels[i];
      auto const lines = title_lines(i);
      double y = placed.top + 0.11 + (placed.x.above ? label_height(placed) : 0) + text_line * (static_cast<double>(lines.size()) - 1);
      for (auto const& line : lines) {
        if (figure_.centred)
          put(line, (placed.left + placed.right) / 2, y, PlacedText::Anchor::centre);
        else
          put(line, placed.left, y, PlacedText::Anchor::left);
        y -= text_line;
      }
    }
  }

  bool has_x_name(std::size_t i) const {
    auto const& name = figure_.panels[i].x.name;
    bool const lowest = i + made_.across >= figure_.panels.size();
    return !name.empty() && (lowest || (!figure_.shared_x && name != figure_.panels[i + made_.across].x.name));
  }
  std::vector<std::string> x_name_lines(std::size_t i) const { return wrapped(figure_.panels[i].x.name, columns_in(made_.width - 0.1)); }
  double x_name_height(std::size_t i) const { return has_x_name(i) ? 0.03 + text_line * static_cast<double>(x_name_lines(i).size()) : 0; }

  void put_names_of_axes() {
    for (std::size_t i = 0; i < made_.panels.size(); ++i) {
      auto const& placed = made_.panels[i];
      if (has_x_name(i)) put_x_name(i);
      if (!placed.has_y || placed.y.name.empty() || (one_y_name() && i > 0)) continue;
      double const bottom = one_y_name() ? made_.panels.back().bottom : placed.bottom, length = placed.top - bottom;
      auto const lines = wrapped(placed.y.name, columns_in(length + beyond_frame));
      double x = placed.left - before_[i % made_.across] + edge + (i % made_.across == 0 ? 0 : 0.08) + text_line / 2;
      for (std::size_t k = 0; k < std::min(lines.size(), name_lines_); ++k, x += text_line)
        put(lines[k], x, std::max(bottom + length / 2, edge + text_width(lines[k]) / 2), PlacedText::Anchor::centre, true);
    }
  }

  void put_x_name(std::size_t i) {
    auto const& placed = made_.panels[i];
    double y = placed.bottom - foot_of(i) - 0.02 - text_line / 2;
    for (auto const& line : x_name_lines(i)) {
      double const half = std::min(text_width(line) / 2, made_.width / 2 - edge);
      put(line, std::clamp((placed.left + placed.right) / 2, edge + half, made_.width - edge - half), y, PlacedText::Anchor::centre);
      y -= text_line;
    }
  }

  /// The names of curves at their ends, and columns of texts.
  void put_beside(Panel const& panel, PlacedPanel const& placed) {
    put_ends(panel, placed);
    double x = placed.right + 0.1;
    for (std::size_t k = 0; k < shown_columns_; x += column_width(panel.columns[k]), ++k) {
      put(panel.columns[k].head, x, placed.top + 0.11, PlacedText::Anchor::left);
      for (std::size_t i = 0; i < panel.columns[k].texts.size(); ++i) {
        double const share = (panel.y.ticks[i].at - panel.y.low) / (panel.y.high - panel.y.low);
        put(panel.columns[k].texts[i], x, placed.bottom + share * high_, PlacedText::Anchor::left);
      }
    }
  }

  void put_ends(Panel const& panel, PlacedPanel const& placed) {
    std::vector<double> heights;
    std::vector<std::string> names;
    std::size_t longest = 0;
    for (auto const& end : panel.ends) {
      double const share = (end.y - panel.y.low) / (panel.y.high - panel.y.low);
      heights.push_back(std::isnan(share) ? 1 : std::clamp(share, 0.0, 1.0));
      names.push_back(end.name);
      longest = std::max(longest, columns(end.more));
    }
    double const room = made_.width - placed.right - 0.1 - edge;
    auto const all = shortened(names, std::max<std::size_t>(columns_in(room), longest + 5) - longest);
    heights = spread(heights, text_line / high_);
    for (std::size_t i = 0; i < panel.ends.size(); ++i) {
      bool const fits = text_width(names[i] + panel.ends[i].more) <= room + 0.01;
      put((fits ? names[i] : all[i]) + panel.ends[i].more, placed.right + 0.1, placed.bottom + heights[i] * high_, PlacedText::Anchor::left,
          false, panel.ends[i].colour);
    }
  }

  // ---- scales of colours, and the legend

  void put_scales() {
    for (std::size_t k = 0; k < figure_.scales.size() && k * made_.across < made_.panels.size(); ++k) {
      auto const& first = made_.panels[k * made_.across];
      double const lowest = figure_.scales.size() > 1 ? first.bottom : made_.panels.back().bottom;
      double const height = std::min(1.6, first.top - lowest);
      made_.scales.push_back({left_of(made_.across - 1) + frame_ + 0.12, first.top - height, height});
    }
  }

  static constexpr double sample = 0.28;

  /// How many names stand in a row: all in columns of equal width.
  std::size_t legend_across() const {
    double widest = 0.5;
    for (auto const& entry : figure_.legend) widest = std::max(widest, sample + 0.2 + text_width(entry.name));
    return std::clamp<std::size_t>(static_cast<std::size_t>((made_.width - 0.1) / widest), 1,
                                   std::max<std::size_t>(1, figure_.legend.size()));
  }
  double legend_height() const {
    std::size_t const across = legend_across(), lines = (figure_.legend.size() + across - 1) / across;
    return lines == 0 ? 0 : 0.06 + 0.15 * static_cast<double>(lines);
  }

  void put_legend() {
    if (figure_.legend.empty()) return;
    std::size_t const across = legend_across();
    double const most = (made_.width - 0.1) / static_cast<double>(across);
    std::vector<std::string> names;
    for (auto const& entry : figure_.legend) names.push_back(entry.name);
    names = shortened(names, columns_in(most - sample - 0.1));
    double width = 0;
    for (auto const& name : names) width = std::max(width, sample + 0.2 + text_width(name));
    width = std::min(width, most);
    double const left = std::max(0.05, (made_.width - width * static_cast<double>(across) + 0.15) / 2);
    for (std::size_t i = 0; i < names.size(); ++i) {
      double const x = left + width * static_cast<double>(i % across), y = made_.height - 0.1 - 0.15 * static_cast<double>(i / across);
      made_.samples.push_back({x, x + sample, y, figure_.legend[i]});
      put(names[i], x + sample + 0.06, y, PlacedText::Anchor::left);
    }
  }

  Figure const& figure_;
  FigureLayout made_;
  std::size_t shown_columns_ = 0, name_lines_ = 1;
  std::vector<double> before_, behind_;  ///< by column: room before and behind its frames
  double frame_ = 0, high_ = 0;          ///< a frame's size
  std::vector<std::string> titles_;
};

}  // namespace

FigureLayout layout_of(Figure const& figure, double width) { return Arrangement(figure, width).made(); }

double height_for(std::size_t curves, double least) { return std::max(least, 0.12 + text_line * static_cast<double>(curves)); }

}  // namespace heed
