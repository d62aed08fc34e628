#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "experiments/config/table.hpp"
#include "experiments/metric/key.hpp"
#include "experiments/report/traces.hpp"

namespace heed {

namespace {

/// A row of a heat map: a layer, or a head of it.
using HeadPlace = std::pair<Index, Index>;  // head −1: the layer as a whole

struct HeatCell {
  double sum = 0;
  int count = 0;
  void add(double value) { sum += value, ++count; }
  double mean() const { return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN(); }
};

/// One probe: by arm, cells row by row, a row for each place.
struct ProbeHeat {
  std::vector<HeadPlace> places;
  Index first = std::numeric_limits<Index>::max(), last = 0;
  std::size_t columns = 0;
  std::vector<std::vector<HeatCell>> cells;
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
  for (auto const& [arm, place, series] : sources) {
    if (std::ranges::find(probe.places, place) == probe.places.end()) probe.places.push_back(place);
    probe.columns = std::max(probe.columns, std::min(most, series->size()));
    probe.first = std::min(probe.first, series->front().first);
    probe.last = std::max(probe.last, series->back().first);
  }
  std::ranges::sort(probe.places);
  probe.cells.assign(arms, std::vector<HeatCell>(probe.places.size() * probe.columns));
  double const steps = to_double(std::max<Index>(1, probe.last - probe.first));
  for (auto const& [arm, place, series] : sources) {
    auto const row = std::ranges::find(probe.places, place) - probe.places.begin();
    for (auto const& [step, value] : *series) {
      double const column = to_double(step - probe.first) / steps * static_cast<double>(probe.columns - 1);
      if (std::isfinite(value)) at(probe.cells[arm], row * static_cast<Index>(probe.columns) + std::lround(column)).add(value);
    }
  }
  return probe;
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

/// The steps' axis, from the middle of the first column on, and what a probe of an arm has in its rows.
Panel heat_panel(ProbeHeat const& probe, std::size_t arm, std::string const& title) {
  double const first = static_cast<double>(probe.first), last = static_cast<double>(probe.last);
  double const column = (last - first) / static_cast<double>(probe.columns - 1);
  std::vector<std::string> rows;
  for (auto const& [layer, head] : probe.places)
    rows.push_back(head < 0 ? fmt::format("layer {}", layer) : fmt::format("layer {} head {}", layer, head));
  Panel panel{.title = title,
              .x = {.name = "step", .low = first - column / 2, .high = last + column / 2, .step = tick_step(last - first, 3)},
              .y = axis_of_rows(rows),
              .cells = Cells{.columns = probe.columns, .first = first, .step = column}};
  for (auto const& cell : probe.cells[arm]) panel.cells->values.push_back(cell.mean());
  return panel;
}

std::optional<Figure> heat_map(Material const& material, std::string const& name, ProbeHeat const& probe) {
  if (probe.columns < 2) return std::nullopt;
  Figure figure{.name = figure_name("probe_" + name), .title = probe_title(name), .across = 3, .shared_x = true, .shared_y = true};
  Range range;
  for (std::size_t arm = 0; arm < probe.cells.size(); ++arm) {
    auto panel = heat_panel(probe, arm, material.arms[arm].name);
    auto const& values = panel.cells->values;
    if (std::ranges::none_of(values, [](double value) { return std::isfinite(value); })) continue;
    for (double const value : values) range.include(value);
    figure.panels.push_back(std::move(panel));
  }
  if (figure.panels.empty()) return std::nullopt;
  bool const decades = name.starts_with("gradients") && range.low > 0 && range.high > 30 * range.low;
  if (range.high <= range.low) range.high = range.low + std::max(1e-12, std::abs(range.low) * 1e-6);
  figure.scales = {{.colours = cividis(), .low = range.low, .high = range.high, .log = decades}};
  figure.frame_height = std::clamp(0.13 * static_cast<double>(probe.places.size()), 0.5, 2.6);
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
