#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "experiments/metric/info.hpp"
#include "experiments/report/traces.hpp"

namespace heed {

namespace {

/// One probe that has layers: the series of each row, by arm. A row is a layer and a head of it, or −1 for the layer as a whole.
struct ProbeHeat {
  std::map<std::pair<Index, Index>, std::map<std::size_t, std::vector<SeriesValues const*>>> rows;
  Index first = std::numeric_limits<Index>::max(), last = 0;  ///< steps
  std::size_t columns = 0;
};

/// By name without layer and head: "attention.entropy", "gradients.jacobian_trace.median".
std::map<std::string, ProbeHeat> probes_of(Material const& material) {
  constexpr std::size_t most = 80;  // columns
  std::map<std::string, ProbeHeat> probes;
  for (std::size_t arm = 0; arm < material.arms.size(); ++arm) {
    for (auto const& [seed, history] : material.arms[arm].histories) {
      for (auto const& [name, series] : history) {
        auto const key = MetricKey::of(name);
        if (!key.is_probe() || key.layer < 0) continue;
        auto& probe = probes[key.statistic.empty() ? key.name : key.name + "." + key.statistic];
        probe.rows[{key.layer, key.head}][arm].push_back(&series);
        probe.columns = std::max(probe.columns, std::min(most, series.size()));
        probe.first = std::min(probe.first, series.front().first);
        probe.last = std::max(probe.last, series.back().first);
      }
    }
  }
  return probes;
}

/// An arm's means over seeds and neighbouring steps, row by row; NaN where there is nothing.
std::vector<double> values_of(ProbeHeat const& probe, std::size_t arm) {
  double const steps = to_double(std::max<Index>(1, probe.last - probe.first));
  std::vector<double> values;
  for (auto const& [layer_and_head, by_arm] : probe.rows) {
    std::vector<double> sums(probe.columns), counts(probe.columns);
    if (auto const own = by_arm.find(arm); own != by_arm.end()) {
      for (auto const* const series : own->second) {
        for (auto const& [step, value] : *series) {
          if (!std::isfinite(value)) continue;
          auto const column = std::lround(to_double(step - probe.first) / steps * static_cast<double>(probe.columns - 1));
          at(sums, column) += value, ++at(counts, column);
        }
      }
    }
    for (std::size_t i = 0; i < sums.size(); ++i) values.push_back(sums[i] / counts[i]);
  }
  return values;
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
Panel heat_panel(ProbeHeat const& probe, std::vector<double> values, std::string const& title) {
  double const first = static_cast<double>(probe.first), last = static_cast<double>(probe.last);
  double const column = (last - first) / static_cast<double>(probe.columns - 1);
  std::vector<std::string> rows;
  for (auto const& [layer_and_head, series] : probe.rows) {
    auto const& [layer, head] = layer_and_head;
    rows.push_back(head < 0 ? fmt::format("layer {}", layer) : fmt::format("layer {} head {}", layer, head));
  }
  return {.title = title,
          .x = {.name = "step", .low = first - column / 2, .high = last + column / 2, .step = tick_step(last - first, 3)},
          .y = axis_of_rows(rows),
          .cells = Cells{.columns = probe.columns, .values = std::move(values), .first = first, .step = column}};
}

std::optional<Figure> heat_map(Material const& material, std::string const& name, ProbeHeat const& probe) {
  if (probe.columns < 2) return std::nullopt;
  Figure figure{.name = figure_name("probe_" + name), .title = probe_title(name), .across = 3, .shared_x = true, .shared_y = true};
  Range range;
  for (std::size_t arm = 0; arm < material.arms.size(); ++arm) {
    auto values = values_of(probe, arm);
    if (std::ranges::none_of(values, [](double value) { return std::isfinite(value); })) continue;
    for (double const value : values) range.include(value);
    figure.panels.push_back(heat_panel(probe, std::move(values), material.arms[arm].name));
  }
  if (figure.panels.empty()) return std::nullopt;
  bool const decades = name.starts_with("gradients") && range.low > 0 && range.high > 30 * range.low;
  if (range.high <= range.low) range.high = range.low + std::max(1e-12, std::abs(range.low) * 1e-6);
  figure.scales = {{.colours = cividis(), .low = range.low, .high = range.high, .log = decades}};
  figure.frame_height = std::clamp(0.13 * static_cast<double>(probe.rows.size()), 0.5, 2.6);
  figure.caption = fmt::format("{} layer{} and step{}{}.", material.single ? "By" : "Mean over the seeds by",
                               probe.rows.rbegin()->first.second < 0 ? "" : ", head",
                               material.single ? "" : "; one colour scale for all arms", decades ? "; the scale is logarithmic" : "");
  return figure;
}

}  // namespace

std::vector<Figure> heat_maps(Material const& material) {
  std::vector<Figure> result;
  for (auto const& [name, probe] : probes_of(material))
    if (auto figure = heat_map(material, name, probe)) result.push_back(std::move(*figure));
  return result;
}

}  // namespace heed
