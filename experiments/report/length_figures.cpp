// Figures for a run or an ablation with evaluations at several lengths (train.evaluate.lengths): the loss against the sequence length, and
// against the position in the longest sequences.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/yaml.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/parts.hpp"
#include "experiments/report/traces.hpp"
#include "experiments/run/csv.hpp"
#include "experiments/run/result_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace {

namespace fs = std::filesystem;

using SeriesValues = std::vector<std::pair<Index, double>>;

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
  std::vector<Guide> guides;
  for (Index const length : trained)
    guides.push_back({.at = static_cast<double>(length), .upright = true, .colour = limit_colour, .dash = 2});
  return guides;
}

/// For each arm, by sequence length: the last value of each seed, with mean and interval.
std::vector<Trace> over_length(Material const& material) {
  std::vector<Trace> traces;
  for (std::size_t i = 0; i < material.arms.size(); ++i) {
    std::vector<SeriesValues> seeds;
    for (auto const& [seed, history] : material.arms[i].histories) {
      std::map<Index, double> values;
      for (auto const& [name, series] : history) {
        if (auto const length = length_of_name(name, "validation.loss"); length && !series.empty()) values[*length] = series.back().second;
      }
      if (!values.empty()) seeds.emplace_back(values.begin(), values.end());
    }
    if (!seeds.empty()) traces.push_back({material.arms[i].name, style_of(material, i), curve_of(seeds), i});
  }
  return traces;
}

std::string table_of(std::vector<Trace> const& traces, std::set<Index> const& trained) {
  std::set<double> lengths;
  for (auto const& trace : traces)
    for (auto const& point : trace.curve) lengths.insert(point.x);
  std::vector<std::string> head{"validation loss at length"};
  for (double const length : lengths)
    head.push_back(fmt::format("{}{}", length, trained.contains(static_cast<Index>(length)) ? " (trained)" : ""));
  std::string body;
  for (auto const& trace : traces) {
    std::vector<std::string> cells{trace.name};
    for (double const length : lengths) {
      auto const point = std::ranges::find(trace.curve, length, &CurvePoint::x);
      if (point == trace.curve.end())
        cells.emplace_back();
      else
        cells.push_back(point->low < point->high ? fmt::format("{:.4f} [{:.4f}, {:.4f}]", point->y, point->low, point->high)
                                                 : fmt::format("{:.4f}", point->y));
    }
    body += html_row(cells);
  }
  return html_table("Loss by length", head, body);
}

std::optional<Figure> length_figure(Material const& material, std::vector<Trace> const& traces, std::set<Index> const& trained) {
  std::set<double> lengths;
  for (auto const& trace : traces)
    for (auto const& point : trace.curve) lengths.insert(point.x);
  Range range = range_from(traces, 0, outliers_among(traces));
  if (lengths.size() < 2 || range.is_empty()) return std::nullopt;
  auto figure = labelled_figure(traces, range, "validation loss (nat)");
  figure.name = "loss_over_length";
  figure.title = "Validation loss by sequence length";
  figure.caption = fmt::format("{}{}.", seeds_text(material), trained_text(trained));
  figure.panels.front().x = axis_of_values(lengths, "sequence length (tokens)");
  figure.panels.front().layers = joined_layers_of(traces);
  figure.panels.front().guides = at_trained(trained);
  return figure;
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
  auto const lines = parse_csv(*text);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto line = lines[i];
    line.resize(std::max<std::size_t>(line.size(), 5));
    auto const length = parsed_number<Index>(line[0]), position = parsed_number<Index>(line[1]);
    auto const loss = parsed_number<double>(line[2]), error = parsed_number<double>(line[3]);
    auto const count = parsed_number<Index>(line[4]);
    auto const known = length ? found.find(*length) : found.end();
    if (!length || !position || !loss || !error || !count || *position < 0 || *position >= *length ||
        (known != found.end() && *position <= known->second.back().position))
      throw FileError(fmt::format("{}: line {} is not a loss at a position", path.string(), i + 1));
    found[*length].push_back({*position, *loss, *error, *count});
  }
  for (auto& [length, positions] : found) {
    auto const most = std::ranges::max(positions, {}, &PositionLoss::count).count;
    std::erase_if(positions, [most](PositionLoss const& at) { return 2 * at.count < most; });
  }
  return found;
}

/// The mean over seeds, of so many points at most.
Curve curve_over(std::vector<std::vector<PositionLoss>> const& seeds, std::size_t most) {
  std::vector<SeriesValues> series;
  for (auto const& positions : seeds) {
    auto& of_seed = series.emplace_back();
    for (auto const& at : positions) of_seed.emplace_back(at.position, at.loss);
  }
  Curve curve = curve_of(series, most);
  if (seeds.size() > 1) return curve;
  // Of one run, the interval of losses that do not depend on each other.
  double const each = static_cast<double>(seeds.front().size()) / static_cast<double>(curve.size());
  std::vector<SeriesValues> squares(1);
  for (auto const& at : seeds.front()) squares.front().emplace_back(at.position, at.error * at.error);
  auto const errors = curve_of(squares, most);
  for (std::size_t i = 0; i < curve.size(); ++i) {
    double const half = 1.96 * std::sqrt(errors[i].y / each);
    if (std::isfinite(half)) curve[i].low -= half, curve[i].high += half;
  }
  return curve;
}

/// Losses by position: for an ablation those of each arm in the longest sequences, for a run also those in sequences of the trained length.
std::vector<Trace> over_position(Material const& material, Index& longest) {
  constexpr Index points = 32;  // neighbouring positions are averaged
  std::vector<std::map<Index, std::vector<std::vector<PositionLoss>>>> arms;
  for (auto const& arm : material.arms) {
    auto& lengths = arms.emplace_back();
    for (auto const& folder : arm.folders)
      for (auto& [length, positions] : positions_of(material.folder / folder)) lengths[length].push_back(std::move(positions));
    if (!lengths.empty()) longest = std::max(longest, lengths.rbegin()->first);
  }
  std::vector<Trace> traces;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    for (auto const& [length, seeds] : arms[i]) {
      if (!material.single && length != longest) continue;
      auto curve = curve_over(seeds, static_cast<std::size_t>(std::max<Index>(2, points * length / longest)));
      std::string const name = material.single ? fmt::format("length {}", length) : material.arms[i].name;
      Look const run{.colour = line_colour(length == longest ? 0 : 1), .dash = length == longest ? 1U : 2U};
      if (curve.size() > 1) traces.push_back({name, material.single ? run : style_of(material, i), std::move(curve), i});
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
      for (auto& point : trace.curve) point.low = point.high = point.y;
  auto const outlier = outliers_among(traces);
  // The first tokens of a sequence are hard to predict, and their losses would set the scale.
  Range const range = range_from(traces, static_cast<double>(trained.empty() ? longest : *trained.begin()) / 8, outlier);
  if (traces.empty() || range.is_empty()) return std::nullopt;
  auto const length = static_cast<double>(longest);
  std::string const band_text = material.single ? "Bands: 95 % intervals of one run, assuming independent losses"
                                : banded        ? seeds_text(material)
                                                : fmt::format("Mean over {} seeds", material.seeds.size());
  auto figure = labelled_figure(traces, range, "validation loss (nat)");
  figure.name = "loss_by_position";
  figure.title = "Validation loss by position";
  figure.caption = fmt::format("Sequences of {} tokens; means of neighbouring positions that at least half of the sequences reach. {}{}.",
                               longest, band_text, trained_text(trained));
  figure.panels.front().x = {.name = "position", .low = 0, .high = length, .step = tick_step(length, 8)};
  figure.panels.front().layers = layers_of(traces, range, banded);
  figure.panels.front().guides = at_trained(trained);
  return figure;
}

std::vector<StudyPart> length_parts_of(Material const& material) {
  auto const traces = over_length(material);
  if (traces.empty()) return {};
  auto const trained = trained_lengths(material);
  StudyPart part{"Length extrapolation", table_of(traces, trained), {}};
  for (auto& figure : {length_figure(material, traces, trained), position_figure(material, trained)})
    if (figure) part.figures.push_back(*figure);
  return {part};
}

Declared<AddedParts> const length_parts{{3, length_parts_of}};

}  // namespace

}  // namespace heed
