#include "experiments/report/figure.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "experiments/config/table.hpp"
#include "experiments/folder/folder.hpp"

namespace heed {

namespace {

/// The end of a text that has at most so many columns.
std::string_view ending(std::string_view text, std::size_t width) {
  while (columns(text) > width) {
    text.remove_prefix(1);
    while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xC0) == 0x80) text.remove_prefix(1);
  }
  return text;
}

std::string cut_middle(std::string const& text, std::size_t width) {
  if (columns(text) <= width) return text;
  return cut(text, width - width / 2) + std::string(ending(text, width / 2));
}

/// Whether names that differ still do.
bool tell_apart(std::vector<std::string> const& names, std::vector<std::string> const& labels) {
  return std::set(names.begin(), names.end()).size() == std::set(labels.begin(), labels.end()).size();
}

/// "5e-2"
std::string in_powers(double value) {
  double const power = std::floor(std::log10(value) + 1e-9);
  return fmt::format("{:.4g}e{:.0f}", value / std::pow(10, power), power);
}

bool has_power(Axis const& axis) {
  return axis.log && std::ranges::any_of(axis.ticks, [](Tick const& tick) { return tick.text.find('e') != std::string::npos; });
}

}  // namespace

void Range::include(double value) {
  if (!std::isfinite(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

void Range::include(CurvePoint const& point) {
  for (double const value : {point.y, point.low, point.high}) include(value);
}

void Range::widen(double share) {
  if (low == 0 && high == 0) high = 1;  // not below: shares and losses have no values there
  double const by = high > low ? share * (high - low) : std::max(1e-9, std::abs(low) * share);
  low -= by;
  high += by;
}

std::string line_colour(std::size_t index) {
  static constexpr char const* colours[line_colours] = {"#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"};
  return colours[index % line_colours];
}

Look look_of(std::size_t index) { return {.colour = line_colour(index), .dash = 1 + index % 5, .mark = index, .size = 0.6}; }
Look solid_look(std::size_t index) {
  return {.colour = line_colour(index), .dash = 1 + index / line_colours % 5, .mark = index, .width = 1.2, .size = 0.45};
}
Look limit_look() { return {.colour = limit_colour, .dash = 2, .width = 1}; }

std::vector<std::string> cividis() {
  return {"#00224E", "#123570", "#3B496C", "#575D6D", "#707173", "#8A8678", "#A59C74", "#C3B369", "#E1CC55", "#FEE838"};
}

double tick_step(double range, double count) {
  double const rough = range / count, power = std::pow(10, std::floor(std::log10(rough)));
  for (double const nice : {1.0, 2.0, 5.0})
    if (nice * power >= rough) return nice * power;
  return 10 * power;
}

Axis axis_over(Range const& range, std::string name, double count) {
  return {.name = std::move(name), .low = range.low, .high = range.high, .step = tick_step(range.high - range.low, count)};
}

Axis log_axis(Range const& range) {
  double const low = std::log10(range.low), high = std::log10(range.high), span = high - low;
  Axis axis{.low = range.low, .high = range.high, .log = true};
  if (span < 0.7) {
    double const step = tick_step(range.high - range.low, 4);
    for (double value = std::ceil(range.low / step) * step; value <= range.high; value += step)
      axis.ticks.push_back({value, fmt::format("{:g}", value)});
    return axis;
  }
  int const every = static_cast<int>(std::max(1.0, std::ceil(span / 6)));
  bool const powers = range.low < 1e-4 || range.high >= 1e6;  // where {:g} writes some of them so: all of them
  for (int e = static_cast<int>(std::floor(low)); e <= static_cast<int>(std::ceil(high)); ++e)
    for (double const digit : {1.0, 2.0, 5.0}) {
      double const value = digit * std::pow(10, e);
      bool const wanted = digit == 1 ? e % every == 0 : span < 1.7;
      if (wanted && Range{range.low * (1 - 1e-9), range.high * (1 + 1e-9)}.holds(value))
        axis.ticks.push_back({value, powers ? in_powers(value) : fmt::format("{:g}", value)});
    }
  return axis;
}

Axis axis_over(std::vector<FigureLayer> const& layers, bool log) {
  Range range;
  for (auto const& layer : layers)
    for (auto const& point : layer.points)
      for (double const value : {point.y, point.low, point.high})
        if (layer.look.colour != limit_colour && (!log || value > 0)) range.include(log ? std::log10(value) : value);
  range.widen(0.07);
  if (range.is_empty()) return {};
  return log ? log_axis({std::pow(10, range.low), std::pow(10, range.high)}) : axis_over(range, "", 4);
}

Axis axis_of_values(std::set<double> const& values, std::string name) {
  double const least = *values.begin(), greatest = *values.rbegin();
  Axis axis{.name = std::move(name), .log = least > 0 && greatest >= 4 * least};
  double const beyond = std::max(0.04 * (greatest - least), 1e-9);
  axis.low = axis.log ? least / 1.2 : least - beyond;
  axis.high = axis.log ? greatest * 1.2 : greatest + beyond;
  for (double const value : values) axis.ticks.push_back({value, fmt::format("{:g}", value)});
  return axis;
}

Axis axis_of_names(std::vector<std::string> const& names, std::string name, double beyond) {
  Axis axis{.name = std::move(name), .low = -beyond, .high = static_cast<double>(names.size()) - 1 + beyond};
  for (std::size_t i = 0; i < names.size(); ++i) axis.ticks.push_back({static_cast<double>(i), names[i]});
  return axis;
}

Axis axis_of_rows(std::vector<std::string> const& names, std::string name) {
  Axis axis = axis_of_names(names, std::move(name));
  std::swap(axis.low, axis.high);
  return axis;
}

void share_x(Figure& figure, std::string const& name, Ticks ticks) {
  Range range;
  for (auto const& panel : figure.panels)
    for (auto const& layer : panel.layers) {
      for (auto const& point : layer.points) range.include(point.x);
      auto const entry = std::ranges::find(figure.legend, layer.name, &LegendEntry::name);
      if (entry != figure.legend.end())
        entry->as = entry->as == layer.as ? layer.as : As::joined_dots;  // a line, and what was measured beside it
      else if (!layer.name.empty())
        figure.legend.push_back({layer.name, layer.look, layer.as});
    }
  if (!(range.low <= range.high)) return;
  Axis axis = axis_over(range, name);
  if (axis.log = ticks != Ticks::even; axis.log) {
    bool const tens = ticks == Ticks::tens;
    double const reach = range.high / range.low, first = tens ? std::pow(10, std::ceil(std::log10(range.low) - 0.01)) : 1;
    double const apart = tens ? std::pow(10, 1 + static_cast<int>(std::log10(reach)) / 6) : reach > 100 ? 4 : 2;
    for (double x = first; x <= range.high * 1.02; x *= apart)
      if (x >= range.low * 0.98) axis.ticks.push_back({x, fmt::format("{:g}", x)});
    axis.low = range.low / 1.25, axis.high = range.high * 1.25;
  } else {
    range.widen(0.03);
    axis.low = range.low, axis.high = range.high;
  }
  bool const powers = std::ranges::any_of(figure.panels, [](Panel const& panel) { return has_power(panel.y); });
  for (auto& panel : figure.panels) {
    panel.x = axis;
    for (auto& tick : panel.y.ticks)
      if (powers && panel.y.log) tick.text = in_powers(tick.at);
  }
  figure.shared_x = true;
}

std::string figure_name(std::string_view text) {
  auto name = cut_label(file_label(text));
  std::ranges::replace(name, '.', '_');
  return name;
}

std::vector<std::string> shortened(std::vector<std::string> const& names, std::size_t width) {
  auto labels = mapped(names, [&](std::string const& name) { return cut(name, width); });
  if (tell_apart(names, labels)) return labels;
  std::ranges::transform(names, labels.begin(), [width](std::string const& name) { return cut_middle(name, width); });
  if (tell_apart(names, labels)) return labels;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto const number = fmt::format(" #{}", i + 1);
    if (columns(names[i]) > width) labels[i] = cut(names[i], width - std::min(width, columns(number))) + number;
  }
  return labels;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  if (auto const end = text.find('\n'); end != text.npos) {
    lines = wrapped(text.substr(0, end), width);
    text.remove_prefix(end + 1);
  }
  while (columns(text) > width) {
    auto const most = text.size() - ending(text, columns(text) - std::max<std::size_t>(width, 1)).size();
    auto mark = text.find_last_of(" -_.=,:", most - 1);
    while (mark != text.npos && mark > 0 && text[mark] != ' ' && text[mark + 1] >= '0' && text[mark + 1] <= '9')  // within a number
      mark = text.find_last_of(" -_.=,:", mark - 1);
    auto const end = mark == text.npos || mark < most / 3 ? most : mark + 1;
    lines.emplace_back(text.substr(0, text[end - 1] == ' ' ? end - 1 : end));
    text.remove_prefix(end);
  }
  lines.emplace_back(text);
  return lines;
}

}  // namespace heed
