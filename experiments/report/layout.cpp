#include "experiments/report/layout.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "experiments/config/table.hpp"

namespace heed {

namespace {

// In inches. A page's font is unknown: this is the mean width of a character of a wide one (DejaVu Sans).
constexpr double character = 0.066, text_line = 0.125, edge = 0.04;
constexpr double between_ticks = 0.11;    ///< of labels below each other
constexpr double shared_gap = 0.25;       ///< between frames with one axis, whose labels at both ends must not touch
constexpr double scale_room = 0.75;       ///< for a colour box and its numbers
constexpr double max_beside = 1.75;       ///< for the names of curves
constexpr double max_before = 1.95;       ///< for those of rows
constexpr double min_frame = 0.8;         ///< below, fewer panels stand in a row
constexpr double beyond_frame = 0.35;     ///< how much longer than its frame a name of the y axis may be
constexpr std::size_t longest_tick = 18;  ///< columns

double text_width(std::string_view text) { return character * static_cast<double>(columns(text)); }
std::size_t columns_in(double inches) { return static_cast<std::size_t>(std::max(1.0, inches / character)); }

double widest(std::vector<std::string> const& texts) {
  double width = 0;
  for (auto const& text : texts) width = std::max(width, text_width(text));
  return width;
}

bool has_ticks(Axis const& axis) { return axis.step > 0 || !axis.ticks.empty(); }

/// The widest label of an axis.
double label_width(Axis const& axis) {
  auto labels = mapped(axis.ticks, &Tick::text);
  if (!(axis.step > 0)) return widest(labels);
  for (double k = std::ceil(axis.low / axis.step); k * axis.step <= axis.high; ++k) labels.push_back(fmt::format("{:g}", k * axis.step));
  return 1.08 * widest(labels);
}

void shorten(std::vector<Tick>& ticks, std::size_t width) {
  auto const labels = shortened(mapped(ticks, &Tick::text), width);
  for (std::size_t i = 0; i < ticks.size(); ++i) ticks[i].text = labels[i];
}

/// Every n-th tick, so that labels of this size do not touch.
void thin(std::vector<Tick>& ticks, double length, double size) {
  auto const most = static_cast<std::size_t>(std::max(1.0, length / size));
  std::size_t const every = (ticks.size() + most - 1) / most;
  for (std::size_t i = 0; i < ticks.size(); ++i)
    if (every > 1 && i % every != 0) ticks[i].text.clear();
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
    for (find_columns(); frame_ < min_frame && (made_.across > 1 || shown_columns_ > 1); find_columns())
      made_.across > 1 ? --made_.across : --shown_columns_;
    for (auto const& panel : figure_.panels)
      if (y_name_lines(panel).size() > 1) name_lines_ = 2;
    if (name_lines_ > 1) find_columns();
    fit_ticks();
    find_rows();
    for (std::size_t i = 0; i < made_.panels.size(); ++i) put_around(i);
    for (std::size_t i = 0; i < made_.panels.size(); ++i) put_beside(figure_.panels[i], made_.panels[i]);
    put_scales();
    put_legend();
    return std::move(made_);
  }

 private:
  using Side = PlacedText::Anchor;

  std::size_t rows() const { return (figure_.panels.size() + made_.across - 1) / made_.across; }
  bool is_first(std::size_t i) const { return i % made_.across == 0; }
  bool is_last(std::size_t i) const { return (i + 1) % made_.across == 0; }
  bool is_lowest(std::size_t i) const { return i + made_.across >= figure_.panels.size(); }
  bool has_box() const { return !figure_.scales.empty() && figure_.scales.front().shown; }
  double when_narrow(double share) const { return made_.width < 4 ? share : 1; }
  /// One name for all rows.
  bool one_y_name() const { return figure_.shared_y && rows() > 1; }

  // ---- columns

  double before_frame(std::size_t i) const {
    auto const& placed = made_.panels[i];
    if (!placed.has_y) return is_first(i) ? edge : has_ticks(placed.x) ? shared_gap : 0.12;
    return edge + 0.08 + std::min(label_width(placed.y), max_before) +
           (placed.y.name.empty() ? 0 : 0.04 + text_line * static_cast<double>(name_lines_)) + (is_first(i) ? 0 : 0.08);
  }

  double behind_frame(Panel const& panel, bool last) const {
    double room = !last ? 0 : has_box() ? scale_room : 0.12, columns = 0.1;
    for (auto const& end : panel.ends)
      room = std::max(room, std::min(when_narrow(0.75) * max_beside, 0.1 + text_width(end.name + end.more) + edge));
    for (std::size_t k = 0; k < shown_columns_; ++k) columns += column_width(panel.columns[k]);
    return std::max(room, shown_columns_ > 0 ? columns : 0);
  }

  static double column_width(TextColumn const& column) { return std::max(text_width(column.head), widest(column.texts)) + 0.14; }

  /// The frames' width, and where columns begin.
  void find_columns() {
    std::size_t const across = made_.across;
    before_.assign(across, edge), behind_.assign(across, 0);
    for (std::size_t i = 0; i < figure_.panels.size(); ++i) {
      auto& placed = made_.panels[i];
      placed.has_x = !figure_.shared_x || is_lowest(i);
      placed.has_y = !figure_.shared_y || is_first(i);
      if (!figure_.panels[i].columns.empty()) shorten(placed.y.ticks, columns_in(max_before * when_narrow(0.5)));
      before_[i % across] = std::max(before_[i % across], before_frame(i));
      behind_[i % across] = std::max(behind_[i % across], behind_frame(figure_.panels[i], is_last(i)));
    }
    double const taken = std::accumulate(before_.begin(), before_.end(), 0.0) + std::accumulate(behind_.begin(), behind_.end(), 0.0);
    frame_ = (made_.width - taken) / static_cast<double>(across);
    if (figure_.frame_width > 0) frame_ = std::min(frame_, figure_.frame_width);
    frame_ = std::max(frame_, 0.3);
    high_ = figure_.frame_height > 0 ? figure_.frame_height
            : figure_.shape > 0      ? figure_.shape * frame_
                                     : std::clamp(0.62 * frame_, 1.1, 1.8);
  }

  double left_of(std::size_t column) const {
    double left = before_[0];
    for (std::size_t c = 1; c <= column; ++c) left += frame_ + behind_[c - 1] + before_[c];
    return left;
  }

  // ---- texts of the axes

  /// A name of the y axis that is longer than its frame takes two lines.
  std::vector<std::string> y_name_lines(Panel const& panel) const {
    double const length = one_y_name() ? high_ * static_cast<double>(rows()) : high_;
    return wrapped(panel.y.name, columns_in(length + beyond_frame));
  }

  /// Of the lowest panel, or of one above a panel with another name.
  std::vector<std::string> x_name_lines(std::size_t i) const {
    auto const& name = figure_.panels[i].x.name;
    bool const shown = is_lowest(i) || (!figure_.shared_x && name != figure_.panels[i + made_.across].x.name);
    return shown && !name.empty() ? wrapped(name, columns_in(made_.width - 0.1)) : std::vector<std::string>{};
  }

  /// Labels below a frame stand beside each other; turned, or above, each needs the height of a line.
  void fit_ticks() {
    for (auto& placed : made_.panels) {
      auto& x = placed.x;
      thin(placed.y.ticks, high_, between_ticks);
      if (x.step > 0) x.step = std::max(x.step, tick_step(x.high - x.low, std::max(1.0, frame_ / (label_width(x) + 0.06))));
      if (x.ticks.empty()) continue;
      double const apart = frame_ / static_cast<double>(x.ticks.size());
      shorten(x.ticks, longest_tick);
      placed.turn = x.above ? 55 : has_names(x) && label_width(x) > 0.95 * apart ? 25 : 0;
      if (placed.turn == 25) shorten(x.ticks, std::min(longest_tick, columns_in((before_[0] + apart / 2 - edge) / 0.91)));
      thin(x.ticks, frame_, placed.turn > 0 ? between_ticks * 1.1 : label_width(x) + 0.06);
    }
  }

  /// The height of x's labels.
  static double label_height(PlacedPanel const& placed) {
    if (!has_ticks(placed.x)) return 0.02;
    return placed.turn == 0 ? 0.26 : 0.12 + label_width(placed.x) * std::sin(placed.turn * 3.1416 / 180);
  }

  // ---- rows

  std::vector<std::string> title_lines(std::size_t i) const {
    double const room = is_last(i) && !has_box() ? made_.width - left_of(i % made_.across) - edge : frame_;
    return titles_[i].empty() ? std::vector<std::string>{} : wrapped(titles_[i], columns_in(room));
  }

  /// Room above a frame, for labels and title, and below it, for labels.
  double head_of(std::size_t i) const {
    bool const has_heads = shown_columns_ > 0 && !figure_.panels[i].columns.front().head.empty();
    double const lines = std::max(static_cast<double>(title_lines(i).size()), has_heads ? 1.0 : 0.0);
    return (lines > 0 ? 0.09 + text_line * lines : 0.1) + labels_above(i);
  }
  double foot_of(std::size_t i) const {
    auto const& placed = made_.panels[i];
    return placed.x.above ? 0.06 : placed.has_x ? label_height(placed) : 0.05;
  }
  double labels_above(std::size_t i) const { return made_.panels[i].x.above ? label_height(made_.panels[i]) : 0; }

  /// Panels from above, below the legend; then the name of the x axis.
  void find_rows() {
    constexpr std::size_t max_lines = 5;
    titles_ = shortened(mapped(figure_.panels, &Panel::title), max_lines * columns_in(frame_) - 4);
    double down = legend_height();
    for (std::size_t first = 0; first < made_.panels.size(); first += made_.across) {
      std::size_t const end = std::min(first + made_.across, made_.panels.size());
      double head = 0, foot = 0;
      for (std::size_t i = first; i < end; ++i) {
        auto const name_lines = static_cast<double>(x_name_lines(i).size());
        head = std::max(head, head_of(i));
        foot = std::max(foot, foot_of(i) + (name_lines > 0 ? 0.03 + text_line * name_lines : 0));
      }
      for (std::size_t i = first; i < end; ++i) made_.panels[i].top = -down - head;
      down += head + high_ + foot;
    }
    made_.height = down + edge;
    for (std::size_t i = 0; i < made_.panels.size(); ++i) {
      auto& placed = made_.panels[i];
      placed.left = left_of(i % made_.across);
      placed.right = placed.left + frame_;
      placed.top += made_.height;
      placed.bottom = placed.top - high_;
    }
  }

  // ---- texts

  /// A text; in the middle of something, it still lies within the figure.
  void put(std::string text, double x, double y, Side side = Side::left, bool upward = false, std::string colour = {}) {
    if (text.empty()) return;
    double const length = upward ? made_.height : made_.width, half = std::min(text_width(text) / 2, length / 2 - edge);
    if (double& along = upward ? y : x; side == Side::centre) along = std::clamp(along, edge + half, length - edge - half);
    made_.texts.push_back({std::move(text), x, y, side, upward, std::move(colour)});
  }

  /// Lines below each other or, upward, beside each other.
  void put_lines(std::vector<std::string> const& lines, double x, double y, Side side, bool upward = false) {
    for (auto const& line : lines) {
      put(line, x, y, side, upward);
      upward ? x += text_line : y -= text_line;
    }
  }

  /// A panel's title and the names of its axes.
  void put_around(std::size_t i) {
    auto const& placed = made_.panels[i];
    double const middle = (placed.left + placed.right) / 2;
    auto const title = title_lines(i);
    put_lines(title, figure_.centred ? middle : placed.left,
              placed.top + 0.11 + labels_above(i) + text_line * (static_cast<double>(title.size()) - 1),
              figure_.centred ? Side::centre : Side::left);
    put_lines(x_name_lines(i), middle, placed.bottom - foot_of(i) - 0.02 - text_line / 2, Side::centre);
    if (!placed.has_y || (one_y_name() && i > 0)) return;
    auto lines = y_name_lines(figure_.panels[i]);
    lines.resize(std::min(lines.size(), name_lines_));
    double const bottom = one_y_name() ? made_.panels.back().bottom : placed.bottom;
    put_lines(lines, placed.left - before_[i % made_.across] + edge + (is_first(i) ? 0 : 0.08) + text_line / 2, (bottom + placed.top) / 2,
              Side::centre, true);
  }

  /// The names of curves at their ends, and columns of texts.
  void put_beside(Panel const& panel, PlacedPanel const& placed) {
    auto const share_of = [&](double y) { return (y - panel.y.low) / (panel.y.high - panel.y.low); };
    double x = placed.right + 0.1;
    std::vector<double> heights;
    std::size_t longest = 0;
    for (auto const& end : panel.ends) {
      heights.push_back(std::isnan(end.y) ? 1 : std::clamp(share_of(end.y), 0.0, 1.0));
      longest = std::max(longest, columns(end.more));
    }
    double const room = made_.width - x - edge;
    auto const names = shortened(mapped(panel.ends, &EndLabel::name), std::max(columns_in(room), longest + 5) - longest);
    heights = spread(heights, text_line / high_);
    for (std::size_t i = 0; i < panel.ends.size(); ++i) {
      auto const& [name, more, y, colour] = panel.ends[i];
      put((text_width(name + more) <= room + 0.01 ? name : names[i]) + more, x, placed.bottom + heights[i] * high_, Side::left, false,
          colour);
    }
    for (std::size_t k = 0; k < shown_columns_; x += column_width(panel.columns[k]), ++k) {
      put(panel.columns[k].head, x, placed.top + 0.11);
      for (std::size_t i = 0; i < panel.columns[k].texts.size(); ++i)
        put(panel.columns[k].texts[i], x, placed.bottom + share_of(panel.y.ticks[i].at) * high_);
    }
  }

  // ---- scales of colours, and the legend

  void put_scales() {
    for (std::size_t k = 0; k < figure_.scales.size() && k * made_.across < made_.panels.size(); ++k) {
      auto const& first = made_.panels[k * made_.across];
      double const lowest = figure_.scales.size() > 1 ? first.bottom : made_.panels.back().bottom;
      double const height = std::min(1.6, first.top - lowest);
      made_.scales.push_back({left_of(made_.across - 1) + frame_ + 0.12, first.top - height, height});
      put(figure_.scales[k].name, made_.scales.back().left, made_.scales.back().bottom - 0.13);
    }
  }

  static constexpr double sample = 0.28, legend_line = 0.15;

  /// How many names stand in a row: all in columns of equal width.
  std::size_t legend_across() const {
    double const cell = std::max(0.5, sample + 0.2 + widest(mapped(figure_.legend, &LegendEntry::name)));
    return std::clamp<std::size_t>(static_cast<std::size_t>((made_.width - 0.1) / cell), 1,
                                   std::max<std::size_t>(1, figure_.legend.size()));
  }
  double legend_height() const {
    auto const lines = std::ceil(static_cast<double>(figure_.legend.size()) / static_cast<double>(legend_across()));
    return lines == 0 ? 0 : 0.06 + legend_line * lines;
  }

  void put_legend() {
    std::size_t const across = legend_across();
    double const most = (made_.width - 0.1) / static_cast<double>(across);
    auto const names = shortened(mapped(figure_.legend, &LegendEntry::name), columns_in(most - sample - 0.1));
    double const width = std::min(sample + 0.2 + widest(names), most);
    double const left = std::max(0.05, (made_.width - width * static_cast<double>(across) + 0.15) / 2);
    for (std::size_t i = 0; i < names.size(); ++i) {
      double const x = left + width * static_cast<double>(i % across),
                   y = made_.height - 0.1 - legend_line * static_cast<double>(i / across);
      made_.samples.push_back({x, x + sample, y, figure_.legend[i]});
      put(names[i], x + sample + 0.06, y);
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

std::vector<double> spread(std::vector<double> heights, double gap) {
  std::vector<std::size_t> order(heights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return heights[i]; });
  gap = std::min(gap, heights.size() > 1 ? 1 / static_cast<double>(heights.size() - 1) : 1);
  // Groups that touch share their displacement: pool neighbours until none overlap.
  struct Group {
    double centre, size, half;
    Group(double at, double count, double gap) : size(count), half(gap * count / 2) {
      centre = std::clamp(at, half - gap / 2, 1 - half + gap / 2);
    }
  };
  std::vector<Group> groups;
  for (std::size_t const i : order) {
    Group last(heights[i], 1, gap);
    for (; !groups.empty() && last.centre - last.half < groups.back().centre + groups.back().half; groups.pop_back()) {
      double const size = groups.back().size + last.size;
      last = {(groups.back().centre * groups.back().size + last.centre * last.size) / size, size, gap};
    }
    groups.push_back(last);
  }
  std::size_t next = 0;
  for (auto const& group : groups)
    for (double k = 0.5; k < group.size; ++k) heights[order[next++]] = group.centre - group.half + gap * k;
  return heights;
}

bool has_names(Axis const& axis) {
  return !axis.ticks.empty() && axis.ticks.front().text.find_first_not_of("0123456789.e+-") != std::string::npos;
}

FigureLayout layout_of(Figure const& figure, double width) { return Arrangement(figure, width).made(); }

double height_for(std::size_t curves, double least) { return std::max(least, 0.12 + text_line * static_cast<double>(curves)); }

}  // namespace heed
