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

}  // namespace

std::optional<Figure> forest(Material const& material) {
  auto const* const baseline = material.baseline_arm();
  if (baseline == nullptr) return std::nullopt;
  struct ForestRow {
    std::size_t arm;
    std::vector<double> seeds;
  };
  std::vector<ForestRow> rows;
  std::vector<double> means;
  for (std::size_t i = 0; i < material.arms.size(); ++i) {
    auto const& arm = material.arms[i];
    if (!arm.difference) continue;
    ForestRow row{i, {}};
    for (auto const& [seed, value] : arm.values)
      if (baseline->values.contains(seed)) row.seeds.push_back(value - baseline->values.at(seed));  // Range leaves out what is not finite
    means.push_back(arm.difference->mean);
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return std::nullopt;

  Outliers const outlier(means);
  Range range;
  range.include(0);
  for (double const sign : {-1.0, 1.0}) range.include(sign * material.margin);
  for (auto const& row : rows) {
    auto const& difference = *material.arms[row.arm].difference;
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

  constexpr double columns_at[] = {3.3, 4.46, 4.86};  // inches from the left
  double const line = 0.21, height = 0.76 + line * static_cast<double>(rows.size());
  std::size_t longest = 0;
  for (auto const& row : rows) longest = std::max(longest, columns(short_name(material.arms[row.arm])));
  std::string data, commands, names;
  std::vector<std::string> plots;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    auto const& arm = material.arms[rows[k].arm];
    auto const& difference = *arm.difference;
    auto const colour = style_of(material, rows[k].arm).colour;
    double const y = -static_cast<double>(k);
    std::size_t dots = 0;
    names += fmt::format("{}{} {}", k > 0 ? ", " : "", gnuplot_tick(short_name(arm)), y);
    auto const column = [&](double at, std::string const& text) {
      commands += fmt::format("set label {} at screen {:.4f}, first {} left\n", gnuplot_text(text), at / Figure::width, y);
    };
    column(columns_at[0], in_words(difference));
    column(columns_at[1], fmt::format("{:.2g}", difference.p));
    column(columns_at[2], std::string(name(difference.verdict)));
    if (std::isnan(difference.mean)) continue;
    data += fmt::format("$s{} << EOD\n", k);
    for (double const value : rows[k].seeds)
      if (range.holds(value)) data += fmt::format("{:.8g} {}\n", value, y), ++dots;
    data += "EOD\n";
    if (dots > 0) plots.push_back(fmt::format("$s{} using 1:($2-0.22) with points pt 6 ps 0.35 lw 0.8 lc rgb '{}'", k, colour));
    if (outlier(difference.mean) && !range.holds(difference.mean)) {
      bool const above = difference.mean > range.high;
      commands += fmt::format("set arrow from graph {}, first {} to graph {}, first {} filled size screen 0.012,20 lc rgb '{}' lw 1.6\n",
                              above ? 0.94 : 0.06, y, above ? 1 : 0, y, colour);
      continue;
    }
    auto const interval = difference.interval.value_or(Interval{difference.mean, difference.mean});
    data += fmt::format("$m{} << EOD\n{:.8g} {} {:.8g} {:.8g}\nEOD\n", k, difference.mean, y, interval.low, interval.high);
    plots.push_back(fmt::format("$m{0} using 1:2:3:4 with xerrorbars pt 7 ps 0.55 lw 1.6 lc rgb '{1}'", k, colour));
  }
  if (plots.empty()) plots.emplace_back("NaN");
  Figure figure{.name = "differences", .title = "Difference to " + material.baseline, .caption = "", .height = height, .commands = ""};
  double const left = std::min(2.1, 0.15 + 0.066 * static_cast<double>(longest));
  figure.commands =
      data + plot_style + "unset grid\nset grid x lc rgb '#D9D9D9' lt 1 lw 0.5\nset border 1\nset ytics scale 0 (" + names + ")\n" +
      margins(left, 3.2, 0.46, height - 0.22, height) +
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
  figure.commands += commands + fmt::format("plot {}\n", fmt::join(plots, ", \\\n  "));
  figure.caption = fmt::format(
      "Paired differences to {} at the {} value: open dots are seeds, bars 95 % intervals of the mean. p is from joint sign flips over "
      "seeds, corrected for the number of arms.{}{}",
      material.baseline, material.at,
      material.margin > 0 ? fmt::format(" The grey band is the equivalence margin of ±{:g}{}.", material.margin,
                                        material.unit.empty() ? "" : " " + material.unit)
                          : "",
      std::ranges::any_of(means, outlier) ? " An arrow marks a mean beyond the scale; finite seeds have dots." : "");
  return figure;
}

}  // namespace heed
