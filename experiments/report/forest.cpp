#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "experiments/config/table.hpp"
#include "experiments/report/traces.hpp"

namespace heed {

namespace {

/// A difference with as many digits as its interval makes worth saying.
std::string in_words(Comparison const& difference) {
  if (!std::isfinite(difference.mean)) return short_number(difference.mean, 0, true);
  double const half = difference.interval ? difference.interval->half_width() : 0;
  if (!(half > 0 && std::isfinite(half)))  // no interval, or one of a damaged summary
    return std::abs(difference.mean) < 1e5 ? fmt::format("{:+.3g}", difference.mean) : short_number(difference.mean, 0, true);
  int const digits = std::clamp(1 - static_cast<int>(std::floor(std::log10(half))), 0, 6);
  auto const mean = short_number(difference.mean, digits, true);
  if (auto const& [low, high] = *difference.interval;
      std::abs(low / 2 + high / 2 - difference.mean) > 1e-3 * half)  // the bar shows its mean
    return fmt::format("[{}, {}]", short_number(low, digits, true), short_number(high, digits, true));
  auto const words = fmt::format("{} ± {}", mean, short_number(half, digits));
  constexpr std::size_t widest = 16;
  bool const huge = std::abs(difference.mean) >= 1e5 || half >= 1e5;
  if (columns(words) <= widest || huge) return words;
  bool const tiny = std::abs(difference.mean) < 1e-4;
  return fmt::format("{} ± {:.1g}", tiny ? short_number(difference.mean, 12, true) : fmt::format("{:+.4g}", difference.mean), half);
}

/// An arm that is compared, and its paired differences by seed.
struct ForestRow {
  std::string name;
  Comparison difference;
  std::string colour;
  std::vector<double> seeds = {};
};

std::vector<ForestRow> rows_of(Material const& material, ArmResult const& baseline) {
  std::vector<ForestRow> rows;
  for (std::size_t i = 0; i < material.arms.size(); ++i) {
    auto const& arm = material.arms[i];
    if (!arm.difference) continue;
    auto& row = rows.emplace_back(ForestRow{arm.name, *arm.difference, style_of(material, i).colour});
    for (auto const& [seed, value] : arm.values)
      if (baseline.values.contains(seed)) row.seeds.push_back(value - baseline.values.at(seed));  // Range leaves out what is not finite
  }
  return rows;
}

/// The x axis: the margin, and means, intervals and seeds of all arms but those far off.
Range range_of(std::vector<ForestRow> const& rows, double margin, Outliers const& outlier) {
  Range range;
  range.include({0, 0, -margin, margin});
  for (auto const& row : rows) {
    auto const& difference = row.difference;
    bool const finite = std::isfinite(difference.mean);
    if (finite && outlier(difference.mean)) continue;
    for (double const value : row.seeds)  // where one diverged, those that did not
      if (finite || !outlier(value)) range.include(value);
    if (!finite) continue;
    range.include(difference.mean);
    if (difference.interval) range.include(difference.interval->low), range.include(difference.interval->high);
  }
  if (range.is_empty()) range = {-1, 1};
  range.widen(0.05);
  return range;
}

/// Adds row k from above to a panel: its name, numbers, seeds, mean and interval.
void add_row(Panel& panel, std::size_t k, ForestRow const& row, Range const& range, Outliers const& outlier) {
  auto const& difference = row.difference;
  double const y = -static_cast<double>(k);
  panel.y.ticks.push_back({y, row.name});
  panel.columns[0].texts.push_back(in_words(difference));
  panel.columns[1].texts.push_back(fmt::format("{:.2g}", difference.p));
  panel.columns[2].texts.emplace_back(name(difference.verdict));
  if (std::isnan(difference.mean)) return;
  auto& seeds = panel.layers.emplace_back(FigureLayer{As::dots, {}, {.colour = row.colour, .width = 0.8, .size = 0.35, .open = true}});
  for (double const value : row.seeds)
    if (range.holds(value)) seeds.points.push_back(CurvePoint::bare(value, y - 0.22));
  if (outlier(difference.mean) && !range.holds(difference.mean)) {
    panel.arrows.push_back({y, difference.mean > range.high, row.colour});
    return;
  }
  auto const interval = difference.interval.value_or(Interval{difference.mean, difference.mean});
  panel.layers.push_back(
      {As::intervals_across, {{difference.mean, y, interval.low, interval.high}}, {.colour = row.colour, .width = 1.6, .size = 0.55}});
}

}  // namespace

std::optional<Figure> forest(Material const& material) {
  auto const* const baseline = material.baseline_arm();
  if (baseline == nullptr) return std::nullopt;
  auto const rows = rows_of(material, *baseline);
  if (rows.empty()) return std::nullopt;
  auto const means = mapped(rows, [](ForestRow const& row) { return row.difference.mean; });
  Outliers const outlier(means);
  Range const range = range_of(rows, material.margin, outlier);
  auto const count = static_cast<double>(rows.size());
  Panel panel{.x = axis_over(range, fmt::format("difference in {}, {} is better", axis_name(material, material.metric), material.better)),
              .y = {.low = 0.35 - count, .high = 0.6},
              .guides = {{.at = 0, .upright = true}},
              .columns = {{"95 % interval"}, {"p"}, {"verdict"}}};
  if (material.margin > 0) panel.boxes.push_back({.x = {-material.margin, material.margin}});
  for (std::size_t k = 0; k < rows.size(); ++k) add_row(panel, k, rows[k], range, outlier);
  auto const band = fmt::format(" The grey band is the equivalence margin of ±{:g}{}.", material.margin,
                                material.unit.empty() ? "" : " " + material.unit);
  auto const caption =
      fmt::format("Paired differences to {} at the {} value: open dots are seeds, bars 95 % intervals of the mean.{}{}", material.baseline,
                  material.at, material.margin > 0 ? band : "",
                  std::ranges::any_of(means, outlier) ? " An arrow marks a mean beyond the scale; finite seeds have dots." : "");
  return Figure{.name = "differences",
                .title = "Difference to " + material.baseline,
                .caption = caption,
                .panels = {std::move(panel)},
                .frame_height = 0.1 + 0.21 * count};
}

}  // namespace heed
