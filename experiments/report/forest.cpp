#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/table.hpp"
#include "experiments/report/figures.hpp"
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
  double const middle = difference.interval->low / 2 + difference.interval->high / 2;
  if (std::abs(middle - difference.mean) > 1e-3 * half) return mean;  // it ends at a bound: the bar shows where
  auto const words = fmt::format("{} ± {}", mean, short_number(half, digits));
  constexpr std::size_t widest = 16;
  bool const huge = std::abs(difference.mean) >= 1e5 || half >= 1e5;
  if (columns(words) <= widest || huge) return words;
  bool const tiny = std::abs(difference.mean) < 1e-4;
  return fmt::format("{} ± {:.1g}", tiny ? short_number(difference.mean, 12, true) : fmt::format("{:+.4g}", difference.mean), half);
}

/// An arm that is compared, and its paired differences by seed.
struct ForestRow {
  ArmResult const& arm;
  std::string colour;
  std::vector<double> seeds;

  Comparison const& difference() const { return *arm.difference; }
};

std::vector<ForestRow> rows_of(Material const& material, ArmResult const& baseline) {
  std::vector<ForestRow> rows;
  for (std::size_t i = 0; i < material.arms.size(); ++i) {
    auto const& arm = material.arms[i];
    if (!arm.difference) continue;
    ForestRow row{arm, style_of(material, i).colour, {}};
    for (auto const& [seed, value] : arm.values)
      if (baseline.values.contains(seed)) row.seeds.push_back(value - baseline.values.at(seed));  // Range leaves out what is not finite
    rows.push_back(std::move(row));
  }
  return rows;
}

/// The x axis: the margin, and means, intervals and seeds of all arms but those far off.
Range range_of(std::vector<ForestRow> const& rows, double margin, Outliers const& outlier) {
  Range range;
  range.include(0);
  for (double const sign : {-1.0, 1.0}) range.include(sign * margin);
  for (auto const& row : rows) {
    auto const& difference = row.difference();
    if (!std::isfinite(difference.mean)) {  // the seeds that did not diverge
      for (double const value : row.seeds)
        if (!outlier(value)) range.include(value);
    }
    if (!std::isfinite(difference.mean) || outlier(difference.mean)) continue;
    range.include(difference.mean);
    if (difference.interval) range.include(difference.interval->low), range.include(difference.interval->high);
    for (double const value : row.seeds) range.include(value);
  }
  if (range.is_empty()) range = {-1, 1};
  range.widen(0.05);
  return range;
}

constexpr double columns_at[] = {3.3, 4.46, 4.86};  // inches from the left

/// The rows as gnuplot data and commands.
struct ForestRows {
  std::string data = {}, commands = {}, names = {};
  std::vector<std::string> plots = {};

  /// Row k from above: its name, numbers, seeds, mean and interval.
  void add(std::size_t k, ForestRow const& row, Range const& range, Outliers const& outlier) {
    auto const& difference = row.difference();
    double const y = -static_cast<double>(k);
    names += fmt::format("{}{} {}", k > 0 ? ", " : "", gnuplot_tick(short_name(row.arm)), y);
    auto const column = [&](double at, std::string const& text) {
      commands += fmt::format("set label {} at screen {:.4f}, first {} left\n", gnuplot_text(text), at / Figure::width, y);
    };
    column(columns_at[0], in_words(difference));
    column(columns_at[1], fmt::format("{:.2g}", difference.p));
    column(columns_at[2], std::string(name(difference.verdict)));
    if (std::isnan(difference.mean)) return;
    add_seeds(k, row, range);
    if (outlier(difference.mean) && !range.holds(difference.mean)) {
      bool const above = difference.mean > range.high;
      commands += fmt::format("set arrow from graph {}, first {} to graph {}, first {} filled size screen 0.012,20 lc rgb '{}' lw 1.6\n",
                              above ? 0.94 : 0.06, y, above ? 1 : 0, y, row.colour);
      return;
    }
    auto const interval = difference.interval.value_or(Interval{difference.mean, difference.mean});
    data += fmt::format("$m{} << EOD\n{:.8g} {} {:.8g} {:.8g}\nEOD\n", k, difference.mean, y, interval.low, interval.high);
    plots.push_back(fmt::format("$m{0} using 1:2:3:4 with xerrorbars pt 7 ps 0.55 lw 1.6 lc rgb '{1}'", k, row.colour));
  }

 private:
  void add_seeds(std::size_t k, ForestRow const& row, Range const& range) {
    std::size_t dots = 0;
    data += fmt::format("$s{} << EOD\n", k);
    for (double const value : row.seeds)
      if (range.holds(value)) data += fmt::format("{:.8g} {}\n", value, -static_cast<double>(k)), ++dots;
    data += "EOD\n";
    if (dots > 0) plots.push_back(fmt::format("$s{} using 1:($2-0.22) with points pt 6 ps 0.35 lw 0.8 lc rgb '{}'", k, row.colour));
  }
};

std::string caption_of(Material const& material, bool outliers) {
  return fmt::format(
      "Paired differences to {} at the {} value: open dots are seeds, bars 95 % intervals of the mean. p is from joint sign flips over "
      "seeds, corrected for the number of arms.{}{}",
      material.baseline, material.at,
      material.margin > 0 ? fmt::format(" The grey band is the equivalence margin of ±{:g}{}.", material.margin,
                                        material.unit.empty() ? "" : " " + material.unit)
                          : "",
      outliers ? " An arrow marks a mean beyond the scale; finite seeds have dots." : "");
}

}  // namespace

std::optional<Figure> forest(Material const& material) {
  auto const* const baseline = material.baseline_arm();
  if (baseline == nullptr) return std::nullopt;
  auto const rows = rows_of(material, *baseline);
  if (rows.empty()) return std::nullopt;
  std::vector<double> means;
  std::size_t longest = 0;
  for (auto const& row : rows) {
    means.push_back(row.difference().mean);
    longest = std::max(longest, columns(short_name(row.arm)));
  }
  Outliers const outlier(means);
  Range const range = range_of(rows, material.margin, outlier);
  ForestRows drawn;
  for (std::size_t k = 0; k < rows.size(); ++k) drawn.add(k, rows[k], range, outlier);
  if (drawn.plots.empty()) drawn.plots.emplace_back("NaN");

  double const line = 0.21, height = 0.76 + line * static_cast<double>(rows.size());
  Figure figure{.name = "differences",
                .title = "Difference to " + material.baseline,
                .caption = caption_of(material, std::ranges::any_of(means, outlier)),
                .height = height,
                .commands = ""};
  double const left = std::min(2.1, 0.15 + 0.066 * static_cast<double>(longest));
  figure.commands =
      drawn.data + plot_style + "unset grid\nset grid x lc rgb '#D9D9D9' lt 1 lw 0.5\nset border 1\nset ytics scale 0 (" + drawn.names +
      ")\n" + margins(left, 3.2, 0.46, height - 0.22, height) +
      fmt::format("set xtics {:.8g}\nset yrange [{}:0.6]\nset xrange [{:.8g}:{:.8g}]\n", tick_step(range.high - range.low, 5),
                  0.35 - static_cast<double>(rows.size()), range.low, range.high) +
      fmt::format("set xlabel {}\n",
                  gnuplot_text(fmt::format("difference in {}, {} is better", axis_name(material, material.metric), material.better)));
  if (material.margin > 0)
    figure.commands += fmt::format(
        "set object 1 rectangle from {:.8g}, graph 0 to {:.8g}, graph 1 behind fc rgb '#D9D9D9' fs transparent solid 0.5 noborder\n",
        -material.margin, material.margin);
  figure.commands += "set arrow from first 0, graph 0 to first 0, graph 1 nohead lc rgb 'black' lw 0.8\n";
  char const* const heads[] = {"mean ± 95 %", "p", "verdict"};
  for (std::size_t i = 0; i < 3; ++i)
    figure.commands +=
        fmt::format("set label '{}' at screen {:.4f}, screen {:.4f} left\n", heads[i], columns_at[i] / Figure::width, 1 - 0.12 / height);
  figure.commands += drawn.commands + fmt::format("plot {}\n", fmt::join(drawn.plots, ", \\\n  "));
  return figure;
}

}  // namespace heed
