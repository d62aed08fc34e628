#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "experiments/report/figures.hpp"
#include "experiments/report/traces.hpp"

namespace heed {

namespace {

/// A row of a heat map: a layer, or a head of it.
using HeadPlace = std::pair<int, int>;  // head −1: the layer as a whole

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

/// A number of at most four digits at the beginning of `rest`, which it is taken off.
std::optional<int> take_number(std::string_view& rest) {
  std::size_t const digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0 || digits > 4) return std::nullopt;
  int const number = std::stoi(std::string(rest.substr(0, digits)));
  rest.remove_prefix(digits);
  return number;
}

struct Named {
  std::string probe;
  HeadPlace place;
};

/// NAME.STATISTIC, layer and head from probe.NAME.layerL[.headH][.STATISTIC]. Nothing for a name of another form.
std::optional<Named> by_layer(std::string_view name) {
  constexpr std::string_view prefix = "probe.", layer = ".layer", head = ".head";
  std::size_t const at = name.rfind(layer);
  if (!name.starts_with(prefix) || at == name.npos || at <= prefix.size()) return std::nullopt;
  std::string_view rest = name.substr(at + layer.size());
  auto const of_layer = take_number(rest);
  std::optional<int> of_head;
  if (rest.starts_with(head)) {
    rest.remove_prefix(head.size());
    of_head = take_number(rest);
    if (!of_head) return std::nullopt;
  }
  bool const whole =
      rest.empty() || (rest.size() > 1 && rest[0] == '.' && rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", 1) == rest.npos);
  if (!of_layer || !whole) return std::nullopt;
  return Named{std::string(name.substr(prefix.size(), at - prefix.size())) + std::string(rest), {*of_layer, of_head.value_or(-1)}};
}

/// The series of each probe that has layers, by its name without layer and head: "attention.entropy", "gradients.jacobian_trace.median".
std::map<std::string, std::vector<HeatSource>> sources_of(Material const& material) {
  std::map<std::string, std::vector<HeatSource>> sources;
  for (std::size_t arm = 0; arm < material.arms.size(); ++arm) {
    for (auto const& [seed, history] : material.arms[arm].histories) {
      for (auto const& [name, series] : history) {
        if (auto const named = by_layer(name)) sources[named->probe].push_back({arm, named->place, &series});
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

/// The steps' axis, from the middle of the first column on, and what a probe of an arm has in its rows.
Panel heat_panel(ProbeHeat const& probe, std::size_t arm, std::string const& title) {
  double const first = static_cast<double>(probe.first), last = static_cast<double>(probe.last);
  double const column = (last - first) / static_cast<double>(probe.columns - 1);
  std::vector<std::string> rows;
  for (auto const& place : probe.places) rows.push_back(row_name(place));
  Panel panel{.title = title, .x = {.name = "step", .low = first - column / 2, .high = last + column / 2}, .y = axis_of(rows)};
  panel.x.step = tick_step(last - first, 3);
  std::swap(panel.y.low, panel.y.high);  // from above
  panel.cells = Cells{.columns = probe.columns, .first = first, .step = column};
  for (auto const& row : probe.cells[arm])
    for (auto const& cell : row) panel.cells->values.push_back(cell.mean());
  return panel;
}

std::optional<Figure> heat_map(Material const& material, std::string const& name, ProbeHeat const& probe) {
  if (probe.columns < 2) return std::nullopt;
  Figure figure{.name = figure_name("probe_" + name), .title = probe_title(name), .across = 3, .shared_x = true, .shared_y = true};
  Range range;
  for (std::size_t arm = 0; arm < probe.cells.size(); ++arm) {
    if (is_empty(probe.cells[arm])) continue;
    figure.panels.push_back(heat_panel(probe, arm, material.arms[arm].name));
    for (double const value : figure.panels.back().cells->values) range.include(value);
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
