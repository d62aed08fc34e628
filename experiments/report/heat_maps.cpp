#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "experiments/config/table.hpp"
#include "experiments/metric/key.hpp"
#include "experiments/report/figures.hpp"
#include "experiments/report/traces.hpp"

namespace heed {

namespace {

/// A row of a heat map: a layer, or a head of it.
using HeadPlace = std::pair<Index, Index>;  // head −1: the layer as a whole

struct HeatCell {
  double sum = 0;
  int count = 0;
  double mean() const { return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN(); }
};

/// One probe: by arm, place and column.
struct ProbeHeat {
  std::vector<HeadPlace> places;
  Index first = std::numeric_limits<Index>::max(), last = 0;
  std::size_t columns = 0;
  std::vector<std::vector<std::vector<HeatCell>>> cells;
};

struct HeatSource {
  std::size_t arm;
  HeadPlace place;
  std::vector<std::pair<Index, double>> const* series;
};

/// The series of each probe that has layers, by its name without layer and head: "attention.entropy", "gradients.jacobian_trace.median".
std::map<std::string, std::vector<HeatSource>> sources_of(Material const& material) {
  std::map<std::string, std::vector<HeatSource>> sources;
  for (std::size_t arm = 0; arm < material.arms.size(); ++arm) {
    for (auto const& [seed, history] : material.arms[arm].histories) {
      for (auto const& [name, series] : history) {
        auto const key = MetricKey::of(name);
        if (!key.is_probe() || key.layer < 0) continue;
        sources[key.statistic.empty() ? key.name : key.name + "." + key.statistic].push_back({arm, {key.layer, key.head}, &series});
      }
    }
  }
  return sources;
}

ProbeHeat gather(std::vector<HeatSource> const& sources, std::size_t arms) {
  constexpr std::size_t most = 80;  // columns
  ProbeHeat probe;
  for (auto const& source : sources) {
    if (std::ranges::find(probe.places, source.place) == probe.places.end()) probe.places.push_back(source.place);
    probe.columns = std::max(probe.columns, std::min(most, source.series->size()));
    probe.first = std::min(probe.first, source.series->front().first);
    probe.last = std::max(probe.last, source.series->back().first);
  }
  std::ranges::sort(probe.places);
  probe.cells.assign(arms, std::vector(probe.places.size(), std::vector<HeatCell>(probe.columns)));
  for (auto const& source : sources) {
    auto const row = static_cast<std::size_t>(std::ranges::find(probe.places, source.place) - probe.places.begin());
    for (auto const& [step, value] : *source.series) {
      double const share =
          probe.last > probe.first ? static_cast<double>(step - probe.first) / static_cast<double>(probe.last - probe.first) : 0;
      auto& cell = heed::at(probe.cells[source.arm][row], std::lround(share * static_cast<double>(probe.columns - 1)));
      if (!std::isfinite(value)) continue;
      cell.sum += value;
      ++cell.count;
    }
  }
  return probe;
}

bool is_empty(std::vector<std::vector<HeatCell>> const& panel) {
  return std::ranges::all_of(
      panel, [](auto const& row) { return std::ranges::all_of(row, [](HeatCell const& cell) { return cell.count == 0; }); });
}

/// The title of a figure: "attention entropy (nat)" for "attention.entropy".
std::string probe_title(std::string name) {
  bool const nats = name.ends_with("entropy");
  if (name == "gradients.scores") return "norm of ∂L/∂scores";
  if (name == "gradients.norm") return "gradient norm";
  if (name == "activations.rms") return "activations, root mean square";
  std::ranges::replace(name, '.', ' ');
  std::ranges::replace(name, '_', ' ');
  return nats ? name + " (nat)" : name;
}

std::string row_name(HeadPlace place) {
  return place.second < 0 ? fmt::format("layer {}", place.first) : fmt::format("layer {} head {}", place.first, place.second);
}

std::optional<Figure> heat_map(Material const& material, std::string const& name, ProbeHeat const& probe) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  std::vector<std::size_t> arms;
  for (std::size_t arm = 0; arm < probe.cells.size(); ++arm) {
    if (is_empty(probe.cells[arm])) continue;
    arms.push_back(arm);
    for (auto const& row : probe.cells[arm]) {
      for (auto const& cell : row) {
        if (cell.count == 0) continue;
        low = std::min(low, cell.mean());
        high = std::max(high, cell.mean());
      }
    }
  }
  if (arms.empty() || probe.columns < 2) return std::nullopt;
  bool const decades = name.starts_with("gradients") && low > 0 && high > 30 * low;
  if (high <= low) high = low + std::max(1e-12, std::abs(low) * 1e-6);

  constexpr double left = 1.0, right = 0.75, gap = 0.14;
  std::size_t const across = std::min<std::size_t>(arms.size(), 3);
  PanelGrid const panels{.count = arms.size(),
                         .across = across,
                         .left = left,
                         .gap = gap,
                         .width = PanelGrid::width_between(left, right, gap, across),
                         .height = std::clamp(0.13 * static_cast<double>(probe.places.size()), 0.5, 2.6),
                         .head = 0.24,
                         .below = 0.46};
  double const height = panels.figure_height();

  Figure figure{.name = figure_name("probe_" + name), .title = probe_title(name), .caption = "", .height = height, .commands = ""};
  for (std::size_t k = 0; k < arms.size(); ++k) {
    figure.commands += fmt::format("$h{} << EOD\n", k);
    for (auto const& row : probe.cells[arms[k]]) {
      for (auto const& cell : row) figure.commands += cell.count > 0 ? fmt::format("{:.5g} ", cell.mean()) : "NaN ";
      figure.commands += '\n';
    }
    figure.commands += "EOD\n";
  }
  figure.commands += cividis;
  figure.commands += fmt::format(
      "set border lw 0.6\nset tics out nomirror scale 0.4\nset key off\nset cbrange [{:.10g}:{:.10g}]\n{}"
      "set multiplot\nset yrange [{}:-0.5]\n",
      low, high, decades ? "set logscale cb\nset format cb '%g'\n" : "", static_cast<double>(probe.places.size()) - 0.5);
  double const column = static_cast<double>(probe.last - probe.first) / static_cast<double>(probe.columns - 1);
  figure.commands += fmt::format("set xrange [{:.8g}:{:.8g}]\n", static_cast<double>(probe.first) - column / 2,
                                 static_cast<double>(probe.last) + column / 2);
  double const ticks = tick_step(static_cast<double>(probe.last - probe.first), 3);
  double const box = std::min(1.6, height - panels.head - panels.below);
  auto const colour_box = fmt::format("set colorbox user origin screen {:.4f}, screen {:.4f} size screen 0.022, screen {:.4f} noborder\n{}",
                                      (Figure::width - right + 0.12) / Figure::width, panels.below / height, box / height,
                                      decades ? "" : fmt::format("set cbtics {:.6g} format '%g'\n", tick_step(high - low, box / 0.16)));
  std::string rows;
  std::size_t const every = 1 + probe.places.size() / 24;
  for (std::size_t i = 0; i < probe.places.size(); i += every)
    rows += fmt::format("{}'{}' {}", i > 0 ? ", " : "", row_name(probe.places[i]), i);
  for (std::size_t k = 0; k < arms.size(); ++k) {
    figure.commands += panels.place(k);
    figure.commands +=
        panels.first_of_row(k) ? fmt::format("set ytics nomirror out scale 0.4 ({})\n", rows) : "set format y ''\nunset ytics\n";
    figure.commands += panels.lowest(k)
                           ? fmt::format("set xtics nomirror out scale 0.4 {:g} format '%g'\nset xlabel 'step' offset 0,0.6\n", ticks)
                           : "unset xtics\nunset xlabel\n";
    if (k == 0)
      figure.commands += colour_box;
    else
      figure.commands += "unset colorbox\n";
    figure.commands += fmt::format("set label 1 {} at graph 0, graph 1 offset character 0,0.6 left\n",
                                   gnuplot_text(cut(material.arms[arms[k]].name, static_cast<std::size_t>(panels.width / 0.066))));
    figure.commands +=
        fmt::format("plot $h{} using ({:.8g} + $1 * {:.8g}):2:3 matrix with image\n", k, static_cast<double>(probe.first), column);
  }
  figure.commands += "unset multiplot\n";
  figure.caption = fmt::format("{} layer{} and step; one colour scale for all arms{}.", material.single ? "By" : "Mean over the seeds by",
                               probe.places.back().second < 0 ? "" : ", head", decades ? ", logarithmic" : "");
  return figure;
}

}  // namespace

std::vector<Figure> heat_maps(Material const& material) {
  std::vector<Figure> result;
  for (auto const& [name, sources] : sources_of(material)) {
    if (auto figure = heat_map(material, name, gather(sources, material.arms.size()))) result.push_back(std::move(*figure));
  }
  return result;
}

}  // namespace heed
