// Figures for a run or an ablation with evaluations at several lengths (train.evaluate.lengths): the loss against the sequence length, and
// against the position in the longest sequences.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/table.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/layout.hpp"
#include "experiments/report/parts.hpp"
#include "experiments/report/traces.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace {

/// The contexts that the arms were trained with.
std::set<Index> trained_lengths(Material const& material) {
  std::set<Index> found;
  for (auto const& arm : material.arms) {
    auto const root = configuration_of(material, arm);
    auto const* const context = root.find("model.context");
    if (auto const length = context != nullptr ? parsed_number<Index>(context->text) : std::nullopt) found.insert(*length);
  }
  return found;
}

std::string trained_text(std::set<Index> const& trained) {
  return trained.empty() ? "" : fmt::format("; dashed: the trained length of {}", fmt::join(trained, ", "));
}

/// A dashed line at each trained length.
std::vector<Guide> at_trained(std::set<Index> const& trained) {
  return mapped(trained,
                [](Index length) { return Guide{.at = static_cast<double>(length), .upright = true, .colour = limit_colour, .dash = 2}; });
}

/// For each arm, by sequence length: the last value of each seed, with mean and interval.
Traces over_length(Material const& material) {
  Traces traces;
  for (std::size_t i = 0; i < material.arms.size(); ++i) {
    std::vector<SeriesValues> seeds;
    for (auto const& [seed, history] : material.arms[i].histories) {
      std::map<Index, double> values;
      for (auto const& [name, series] : history) {
        auto const key = MetricKey::of(name);
        if (key.split == "validation" && key.name == "loss" && key.length >= 0 && !series.empty())
          values[key.length] = series.back().second;
      }
      if (!values.empty()) seeds.emplace_back(values.begin(), values.end());
    }
    if (seeds.empty()) continue;
    traces.push_back({As::joined_intervals, curve_of(seeds), style_of(material, i), material.arms[i].name});
    traces.back().look.mark = traces.size() - 1;
  }
  return traces;
}

std::string table_of(Traces const& traces, std::set<double> const& lengths, std::set<Index> const& trained) {
  TableRows rows{{"validation loss at length"}};
  for (double const length : lengths)
    rows.front().push_back(fmt::format("{}{}", length, trained.contains(static_cast<Index>(length)) ? " (trained)" : ""));
  for (auto const& trace : traces) {
    rows.push_back({trace.name});
    for (double const length : lengths) {
      auto const point = std::ranges::find(trace.points, length, &CurvePoint::x);
      auto& cell = rows.back().emplace_back();
      if (point == trace.points.end()) continue;
      cell = fmt::format("{:.4f}", point->y);
      if (point->low < point->high) cell += fmt::format(" [{:.4f}, {:.4f}]", point->low, point->high);
    }
  }
  return html_table("Loss by length", rows);
}

std::optional<Figure> length_figure(Material const& material, Traces const& traces, std::set<double> const& lengths,
                                    std::set<Index> const& trained) {
  Range range = range_from(traces, 0, Outliers(ends_of(traces)));
  if (lengths.size() < 2 || range.is_empty()) return std::nullopt;
  return Figure{.name = "loss_over_length",
                .title = "Validation loss by sequence length",
                .caption = fmt::format("{}{}.", seeds_text(material), trained_text(trained)),
                .panels = {{.x = axis_of_values(lengths, "sequence length (tokens)"),
                            .y = axis_over(range, "validation loss (nat)"),
                            .layers = traces,
                            .guides = at_trained(trained),
                            .ends = ends_within(traces, range)}},
                .frame_height = height_for(traces.size())};
}

/// A line of loss_by_position.csv.
struct PositionLoss {
  Index position;
  double loss, error;
  Index count;  ///< of rows
};
using Positions = std::map<Index, std::vector<PositionLoss>>;  ///< by the length of the rows

/// The contents of a trial's loss_by_position.csv; empty if there is no such file. Positions that fewer than half of the rows reach are
/// left out, since only short documents, which are easy to predict, fit at the end of packed rows. Throws FileError for a file without
/// losses.
Positions positions_of(fs::path const& trial) {
  Positions found;
  fs::path const path = trial / "loss_by_position.csv";
  check_written(trial, "loss_by_position.csv");
  auto const text = read_if_there(path);
  if (!text) return found;
  auto const csv = parse_csv(*text);
  for (auto const& line : csv_lines(csv, path)) {
    auto const length = line.number<Index>("length"), position = line.number<Index>("position");
    auto& positions = found[length];
    if (position < 0 || position >= length || (!positions.empty() && position <= positions.back().position))
      throw FileError(fmt::format("{} is not a loss at a position", line.location()));
    positions.push_back({position, line.number("loss"), line.number("standard_error"), line.number<Index>("count")});
  }
  for (auto& [length, positions] : found) {
    auto const most = std::ranges::max(positions, {}, &PositionLoss::count).count;
    std::erase_if(positions, [most](PositionLoss const& at) { return 2 * at.count < most; });
  }
  return found;
}

/// The mean over seeds, of so many points at most.
Curve curve_over(std::vector<std::vector<PositionLoss>> const& seeds, std::size_t most) {
  auto const losses = [](auto const& of_seed) { return mapped(of_seed, [](auto const& at) { return std::pair(at.position, at.loss); }); };
  Curve curve = curve_of(mapped(seeds, losses), most);
  if (seeds.size() > 1) return curve;
  // Of one run, the interval of losses that do not depend on each other.
  double const each = static_cast<double>(seeds.front().size()) / static_cast<double>(curve.size());
  auto const errors = curve_of({mapped(seeds.front(), [](auto const& at) { return std::pair(at.position, at.error * at.error); })}, most);
  for (std::size_t i = 0; i < curve.size(); ++i) {
    double const half = 1.96 * std::sqrt(errors[i].y / each);
    if (std::isfinite(half)) curve[i].low -= half, curve[i].high += half;
  }
  return curve;
}

/// Losses by position: for an ablation those of each arm in the longest sequences, for a run also those in sequences of the trained length.
Traces over_position(Material const& material, Index& longest) {
  constexpr Index points = 32;  // neighbouring positions are averaged
  std::vector<std::map<Index, std::vector<std::vector<PositionLoss>>>> arms;
  for (auto const& arm : material.arms) {
    auto& lengths = arms.emplace_back();
    for (auto const& folder : arm.folders)
      for (auto& [length, positions] : positions_of(material.folder / folder)) lengths[length].push_back(std::move(positions));
    if (!lengths.empty()) longest = std::max(longest, lengths.rbegin()->first);
  }
  Traces traces;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    for (auto const& [length, seeds] : arms[i]) {
      if (!material.single && length != longest) continue;
      auto curve = curve_over(seeds, static_cast<std::size_t>(std::max<Index>(2, points * length / longest)));
      if (curve.size() < 2) continue;
      if (material.single)
        traces.push_back({As::line, std::move(curve), look_of(length == longest ? 0 : 1), fmt::format("length {}", length)});
      else
        traces.push_back({As::line, std::move(curve), style_of(material, i), material.arms[i].name});
    }
  }
  return traces;
}

std::optional<Figure> position_figure(Material const& material, std::set<Index> const& trained) {
  Index longest = 0;
  auto traces = over_position(material, longest);
  constexpr std::size_t crowded = 6;  // bands on each other tell nothing apart
  bool const banded = traces.size() <= crowded;
  if (!banded)
    for (auto& trace : traces)
      for (auto& point : trace.points) point.low = point.high = point.y;
  Outliers const outlier(ends_of(traces));
  // The first tokens of a sequence are hard to predict, and their losses would set the scale.
  Range const range = range_from(traces, static_cast<double>(trained.empty() ? longest : *trained.begin()) / 8, outlier);
  if (traces.empty() || range.is_empty()) return std::nullopt;
  auto const length = static_cast<double>(longest);
  std::string const band_text = material.single ? "Bands: 95 % intervals of one run, assuming independent losses"
                                : banded        ? seeds_text(material)
                                                : "Mean over " + plural(material.seeds.size(), "seed");
  return Figure{
      .name = "loss_by_position",
      .title = "Validation loss by position",
      .caption = fmt::format("Sequences of {} tokens; means of neighbouring positions that at least half of the sequences reach. {}{}.",
                             longest, band_text, trained_text(trained)),
      .panels = {{.x = axis_over(Range{0, length}, "position", 8),
                  .y = axis_over(range, "validation loss (nat)"),
                  .layers = layers_of(traces, range, banded),
                  .guides = at_trained(trained),
                  .ends = ends_within(traces, range)}},
      .frame_height = height_for(traces.size())};
}

std::vector<StudyPart> length_parts_of(Material const& material) {
  auto const traces = over_length(material);
  if (traces.empty()) return {};
  std::set<double> lengths;
  for (auto const& trace : traces)
    for (auto const& point : trace.points) lengths.insert(point.x);
  auto const trained = trained_lengths(material);
  StudyPart part{"Length extrapolation", table_of(traces, lengths, trained), {}};
  for (auto& figure : {length_figure(material, traces, lengths, trained), position_figure(material, trained)})
    if (figure) part.figures.push_back(*figure);
  return {part};
}

Declared<AddedParts> const length_parts{{3, length_parts_of}};

}  // namespace

}  // namespace heed
