// What the cells of softmax_scaling say together: agreement with theory, growth with d_k as slopes in double logarithms, and the limits for
// large d_k.

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <tuple>

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/ablation/scaling/quadrature.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/study/softmax_scaling.hpp"

namespace heed {

namespace {

using Q = Quantity;

ScalingCell const* find(std::vector<ScalingCell> const& cells, std::string const& distribution, std::string const& scale, double d_k,
                        double keys) {
  auto const found = std::ranges::find_if(cells, [&](ScalingCell const& c) {
    return c.distribution == distribution && c.scale == scale && static_cast<double>(c.d_k) == d_k && static_cast<double>(c.keys) == keys;
  });
  return found == cells.end() ? nullptr : &*found;
}

/// "-0.5002 … -0.4979"; of none: "".
std::string range_text(std::optional<Interval> const& interval) {
  return interval ? fmt::format("{:.4f} … {:.4f}", interval->low, interval->high) : "";
}

/// How far measurements lie from theory, in standard errors.
void compare_with_theory(SoftmaxScalingSettings const& settings, std::vector<ScalingCell> const& cells, StudyResult& result) {
  StudyTable table{
      "Agreement with theory, in standard errors",
      {{"distribution", "numbers", "farthest", "where", "draws", "mean of squares, a draw counting once", "95 % range expected"}}};
  for (auto const& distribution : settings.distribution) {
    auto scores = scores_of(cells);
    std::erase_if(scores, [&](ZScore const& score) { return score.cell->distribution != distribution; });
    if (scores.empty()) continue;
    auto const agreement = agreement_of(scores);
    auto const& [cell, quantity, z] = agreement.farthest;
    auto const where = fmt::format("{}, {}, d_k {}, {} keys", name(quantity), cell->scale, cell->d_k, cell->keys);
    auto const [low, high] = agreement.expected;
    table.rows.push_back({distribution, std::to_string(scores.size()), fmt::format("{:.2f}", std::abs(z)), where,
                          std::to_string(agreement.draws), fmt::format("{:.3f}", agreement.mean_square),
                          fmt::format("{:.2f} … {:.2f}", low, high)});
    result.figures.emplace_back(distribution + ".farthest", std::abs(z));
    result.figures.emplace_back(distribution + ".mean_square", agreement.mean_square);
  }
  if (table.rows.size() > 1) result.tables.push_back(std::move(table));
}

void say_precision(SoftmaxScalingSettings const& settings, std::vector<ScalingCell> const& cells, StudyResult& result) {
  double largest = 0;
  std::size_t beyond = 0, count = 0;
  std::string where;
  for (auto const& cell : cells) {
    for (std::size_t q = 0; q < quantities; ++q) {
      auto const& value = cell.values[q];
      // A run has only so many sequences, and layers are drawn so often.
      if (!value || value->standard_error == 0 || !cell.of_law() || describes_spread(static_cast<Quantity>(q))) continue;
      double const relative = value->standard_error / std::abs(value->mean);
      ++count;
      if (relative > settings.precision) ++beyond;
      if (relative <= largest) continue;
      largest = relative;
      where =
          fmt::format("{} of {}, {}, d_k {}, {} keys", name(static_cast<Quantity>(q)), cell.distribution, cell.scale, cell.d_k, cell.keys);
    }
  }
  result.figures.emplace_back("largest_relative_error", largest);
  result.figures.emplace_back("beyond_precision", static_cast<double>(beyond));
  auto const undetermined =
      std::ranges::count_if(cells, [](ScalingCell const& cell) { return cell.of_law() && cell.get(Q::frobenius_median) == nullptr; });
  if (undetermined > 0)
    result.sentences.push_back(
        fmt::format("{} medians of rademacher logits are left out: ‖J‖ takes few values there, and the median lies between two of them.",
                    undetermined));
  if (count > 0)
    result.sentences.push_back(fmt::format("The largest standard error is {:.2g} % of its quantity ({}); {} of {} are above {:.2g} %.",
                                           100 * largest, where, beyond, count, 100 * settings.precision));
}

void show_growth(SoftmaxScalingSettings const& settings, std::vector<ScalingCell> const& cells, StudyResult& result) {
  double const keys = settings.shown_keys();
  for (auto const& distribution : settings.distribution) {
    StudyTable table{fmt::format("{}, {} keys", distribution, keys), {{"d_k"}}};
    std::vector<std::pair<Quantity, char const*>> shown{
        {Q::trace, "tr J"}, {Q::frobenius_squared, "‖J‖²"}, {Q::frobenius_median, "median ‖J‖"}};
    if (distribution != "logits") shown.emplace_back(Q::query_gradient_squared, "‖∂p/∂q‖²");
    for (double const d : settings.d_k) table.rows.push_back({fmt::format("{}", d)});
    for (auto const& [q, what] : shown) {
      for (auto const& scale : settings.scales()) {
        table.rows.front().push_back(fmt::format("{} {}", what, scale));
        for (std::size_t i = 0; i < settings.d_k.size(); ++i) {
          auto const* const cell = find(cells, distribution, scale, settings.d_k[i], keys);
          auto const* const value = cell ? cell->get(q) : nullptr;
          table.rows[i + 1].push_back(value ? fmt::format("{:.3g}", value->mean) : "");
        }
      }
    }
    result.tables.push_back(std::move(table));
  }
}

/// The heads of a trained run.
void show_heads(SoftmaxScalingSettings const& settings, std::vector<ScalingCell> const& cells, StudyResult& result) {
  if (!settings.run) return;
  double const keys = settings.shown_keys();
  StudyTable table{fmt::format("{}, {} keys", *settings.run, keys), {{"head", "d_k", "scale"}}};
  std::vector const shown{Q::logit_variance, Q::logit_kurtosis, Q::trace, Q::frobenius_median, Q::entropy, Q::query_gradient_squared};
  for (auto const q : shown) table.rows.front().push_back(name(q));
  for (auto const& cell : cells) {
    if (!cell.of_head() || static_cast<double>(cell.keys) != keys) continue;
    table.rows.push_back({cell.distribution, std::to_string(cell.d_k), cell.scale});
    for (auto const q : shown) table.rows.back().push_back(fmt::format("{:.3g}", cell.mean(q)));
  }
  result.tables.push_back(std::move(table));
}

/// Exponents, as a table and in the summary's figures.
void fit_slopes(SoftmaxScalingSettings const& settings, std::vector<ScalingCell> const& cells, StudyResult& result) {
  std::vector<std::string> const head{"distribution", "scale", "keys", "quantity", "slope", "95 % interval", "theory"};
  StudyTable few{"Slopes in double logarithms over d_k ≥ 64, without a scale", {head}};
  StudyTable all{"Slopes in double logarithms over d_k ≥ 64", {head}, true};
  for (auto const& [distribution, scale, keys, quantity, line, theory] : slopes_of(cells)) {
    std::string const key = fmt::format("slope.{}.{}.{}.{}", distribution, scale, keys, name(quantity));
    result.figures.emplace_back(key, line.slope);
    if (line.interval) {
      result.figures.emplace_back(key + ".low", line.interval->low);
      result.figures.emplace_back(key + ".high", line.interval->high);
    }
    if (theory) result.figures.emplace_back(key + ".theory", *theory);
    all.rows.push_back({distribution, scale, fmt::format("{}", keys), name(quantity), short_number(line.slope, 4),
                        range_text(line.interval), theory ? fmt::format("{:.4f}", *theory) : ""});
    if (static_cast<double>(keys) == settings.shown_keys() && scale == "none") few.rows.push_back(all.rows.back());
  }
  if (few.rows.size() > 1) result.tables.push_back(std::move(few));
  if (all.rows.size() > 1) result.tables.push_back(std::move(all));
}

/// Measurements at the largest d_k over their limits for d_k → ∞ without a scale (see expected_maximum).
void show_limits(SoftmaxScalingSettings const& settings, std::vector<ScalingCell> const& cells, StudyResult& result) {
  double const d = *std::ranges::max_element(settings.d_k);
  if (d < 64 || std::ranges::find(settings.scale, "none") == settings.scale.end()) return;
  StudyTable table{
      fmt::format("Without a scale at d_k {}, over the limit for d_k → ∞", d),
      {{"distribution", "keys", "m_n", "tr J / (m_n/√d)", "‖J‖² / (m_n/3√d)", "H / (π²/6 m_n/√d)", "(1 − max p) / (ln 2 m_n/√d)"}},
      true};
  for (auto const& cell : cells) {
    if (!cell.of_law() || cell.scale != "none" || to_double(cell.d_k) != d) continue;
    double const m = expected_maximum(cell.keys), limit = m / std::sqrt(d);
    table.rows.push_back({cell.distribution, fmt::format("{}", cell.keys), fmt::format("{:.5f}", m),
                          fmt::format("{:.4f}", cell.mean(Q::trace) / limit),
                          fmt::format("{:.4f}", cell.mean(Q::frobenius_squared) / (limit / 3)),
                          fmt::format("{:.4f}", cell.mean(Q::entropy) / (std::numbers::pi * std::numbers::pi / 6 * limit)),
                          fmt::format("{:.4f}", (1 - cell.mean(Q::max_weight)) / (std::numbers::ln2 * limit))});
  }
  result.tables.push_back(std::move(table));
}

/// "-0.4990 (95 % -0.5002 … -0.4979, exact -0.4991)"
std::string slope_text(Slope const& slope) {
  std::vector<std::string> more;
  if (slope.line.interval) more.push_back("95 % " + range_text(slope.line.interval));
  if (slope.theory) more.push_back(fmt::format("exact over the same d_k {:.4f}", *slope.theory));
  auto const value = short_number(slope.line.slope, 4);
  return more.empty() ? value : fmt::format("{} ({})", value, fmt::join(more, ", "));
}

/// Adds sentences on the findings: on those with the Gaussian law if it was measured.
void add_findings(SoftmaxScalingSettings const& settings, std::vector<ScalingCell> const& cells, StudyResult& result) {
  if (settings.distribution.empty()) return;
  bool const gaussian = std::ranges::find(settings.distribution, "gaussian") != settings.distribution.end();
  auto const& distribution = gaussian ? *std::ranges::find(settings.distribution, "gaussian") : settings.distribution.front();
  auto const [least, most] = std::ranges::minmax(settings.d_k);
  double const keys = settings.shown_keys();
  auto const slopes = slopes_of(cells);
  auto const slope = [&](std::string const& scale, Quantity q) {
    auto const found = std::ranges::find_if(slopes, [&](Slope const& s) {
      return s.distribution == distribution && s.scale == scale && s.quantity == q && static_cast<double>(s.keys) == keys;
    });
    return found == slopes.end() ? nullptr : &*found;
  };
  if (auto const* const raw = slope("none", Q::trace), * const scaled = slope("rsqrt", Q::trace); raw && scaled)
    result.sentences.push_back(
        fmt::format("Softmax saturates: without a scale the mean of tr J goes as d_k to the power {}, with 1/√d_k as d_k to the power {}.",
                    slope_text(*raw), slope_text(*scaled)));
  auto const *const first = find(cells, distribution, "none", least, keys), *const last = find(cells, distribution, "none", most, keys);
  if (first && last && most >= 64 && first->get(Q::frobenius_median) && last->get(Q::frobenius_median)) {
    std::string const grows = last->get(Q::query_gradient_squared)
                                  ? fmt::format("the mean of ‖∂p/∂q‖² goes from {:.3g} to {:.3g}, and ",
                                                first->mean(Q::query_gradient_squared), last->mean(Q::query_gradient_squared))
                                  : "";
    result.sentences.push_back(fmt::format(
        "Gradients become rare rather than small: without a scale the median of ‖J‖ goes from {:.3g} at d_k {} to {:.2g} at {}, "
        "while {}the largest 1 % of the samples carry {:.0f} % of the mean of ‖J‖².",
        first->mean(Q::frobenius_median), least, last->mean(Q::frobenius_median), most, grows, 100 * last->mean(Q::frobenius_top)));
  }
  double const many = *std::ranges::max_element(settings.keys);
  auto const expected = [](ScalingCell const* cell) {
    auto const& value = *cell->get(Q::frobenius_squared);
    return value.theory.value_or(value.mean);
  };
  ScalingCell const* peak = nullptr;
  for (double const d : settings.d_k) {
    auto const* const cell = find(cells, distribution, "none", d, many);
    if (cell && (!peak || expected(cell) > expected(peak))) peak = cell;
  }
  auto const *const start = find(cells, distribution, "none", least, many), *const end = find(cells, distribution, "none", most, many);
  if (start && end && peak != start && peak != end)
    result.sentences.push_back(
        fmt::format("The mean of ‖J‖² is not monotone: with {} keys and no scale it rises from {:.3g} at d_k {} to "
                    "{:.3g} at {} before it falls to {:.3g} at {}.",
                    many, start->mean(Q::frobenius_squared), least, peak->mean(Q::frobenius_squared), peak->d_k,
                    end->mean(Q::frobenius_squared), most));
}

}  // namespace

std::vector<Slope> slopes_of(std::vector<ScalingCell> const& cells) {
  std::vector<Slope> slopes;
  std::set<std::tuple<std::string, std::string, Index>> done;
  for (auto const& first : cells) {
    if (first.d_k < 64 || !first.of_law() || !done.emplace(first.distribution, first.scale, first.keys).second) continue;
    for (auto const q : {Q::trace, Q::frobenius_squared, Q::entropy, Q::query_gradient_squared, Q::key_gradient_squared}) {
      std::vector<double> x, measured, theory;
      for (auto const& cell : cells) {
        auto const* const value = cell.get(q);
        bool const along =
            cell.d_k >= 64 && cell.distribution == first.distribution && cell.scale == first.scale && cell.keys == first.keys;
        if (!along || !value || value->mean <= 0) continue;
        x.push_back(std::log(to_double(cell.d_k)));
        measured.push_back(std::log(value->mean));
        if (value->theory && *value->theory > 0) theory.push_back(std::log(*value->theory));
      }
      if (x.size() < 3) continue;
      slopes.push_back({first.distribution, first.scale, first.keys, q, fit_line(x, measured),
                        theory.size() == x.size() ? std::optional(fit_line(x, theory).slope) : std::nullopt});
    }
  }
  return slopes;
}

std::vector<ZScore> scores_of(std::vector<ScalingCell> const& cells) {
  std::vector<ZScore> scores;
  for (auto const& cell : cells) {
    for (std::size_t q = 0; q < quantities; ++q) {
      auto const& value = cell.values[q];
      if (!value || !value->theory || value->standard_error <= 1e-7 * std::abs(value->mean)) continue;
      scores.push_back({&cell, static_cast<Quantity>(q), (value->mean - *value->theory) / value->standard_error});
    }
  }
  return scores;
}

ScoreAgreement agreement_of(std::vector<ZScore> const& scores) {
  std::map<std::tuple<std::string, Index, Index>, std::pair<double, double>> draws;  // Σ z² and how many
  ScoreAgreement agreement{.farthest = scores.front()};
  for (auto const& score : scores) {
    auto& [squares, count] = draws[{score.cell->distribution, score.cell->d_k, score.cell->keys}];
    squares += score.z * score.z;
    count += 1;
    if (std::abs(score.z) > std::abs(agreement.farthest.z)) agreement.farthest = score;
  }
  auto const n = static_cast<double>(draws.size());
  for (auto const& [draw, sum] : draws) agreement.mean_square += sum.first / sum.second / n;
  boost::math::chi_squared const law(n);
  agreement.draws = draws.size();
  agreement.expected = {quantile(law, 0.025) / n, quantile(law, 0.975) / n};
  return agreement;
}

std::optional<Figure> agreement_with_theory(std::vector<ScalingCell> const& cells) {
  auto scores = scores_of(cells);
  if (scores.size() < 3) return std::nullopt;
  std::ranges::sort(scores, {}, &ZScore::z);
  auto const count = static_cast<double>(scores.size());
  auto const agreement = agreement_of(scores);
  auto const& far = agreement.farthest;
  auto const what = fmt::format("{}, {}, {}, d_k {}, {} keys", name(far.quantity), far.cell->distribution, scale_text(far.cell->scale),
                                far.cell->d_k, far.cell->keys);
  boost::math::normal const normal;
  FigureLayer points{As::dots, {}, {.colour = line_colour(1), .size = 0.35}};
  std::size_t const every = 1 + scores.size() / 400;
  double most = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    bool const tail = i < 60 || i + 60 >= scores.size();  // those in the middle lie on each other
    double const expected = quantile(normal, (static_cast<double>(i) + 0.5) / count);
    most = std::max({most, std::abs(expected), std::abs(scores[i].z)});
    if (tail || i % every == 0) points.points.push_back(CurvePoint::bare(expected, scores[i].z));
  }
  double const end = std::ceil(most * 1.05), place = quantile(normal, far.z > 0 ? 1 - 0.5 / count : 0.5 / count);
  FigureLayer const line{As::line, {CurvePoint::bare(-end, -end), CurvePoint::bare(end, end)}, {.colour = line_colour(0), .width = 0.8}};
  FigureLayer const ring{As::dots, {CurvePoint::bare(place, far.z)}, {.colour = line_colour(2), .width = 1, .size = 1, .open = true}};
  // The texts are in the corner that points never come to, for they rise.
  Panel panel{.x = {.name = "normal quantile", .low = -end, .high = end, .step = 1},
              .y = {.name = "(measured − exact) / standard error", .low = -end, .high = end, .step = 1},
              .layers = {line, std::move(points), ring},
              .notes = {{.text = fmt::format("farthest, {:+.2f}:", far.z), .x = 0.03, .y = 0.95, .of_frame = true},
                        {.text = what, .x = 0.03, .y = 0.89, .of_frame = true}}};
  auto const caption = fmt::format(
      "All {} numbers for which theory is known, in order, beside the quantiles of a standard normal; the line is perfect agreement. The "
      "farthest, {:+.2f}, is {}. Numbers of one distribution, d_k and number of keys share samples and move together; each of these {} "
      "draws counts once in the mean of the squares, {:.3f}: 1 is expected if the theory and the standard errors are right, and of 100 "
      "such "
      "studies 95 lie within {:.2f} … {:.2f}. Points in the middle are thinned.",
      scores.size(), far.z, what, agreement.draws, agreement.mean_square, agreement.expected.low, agreement.expected.high);
  return Figure{.name = "agreement",
                .title = "Measured minus exact, in standard errors",
                .caption = caption,
                .panels = {std::move(panel)},
                .frame_height = 2.4};
}

std::vector<ScalingCell> cells_of(CsvRows const& csv, std::filesystem::path const& path) {
  std::vector<ScalingCell> cells;
  for (auto const& line : csv_lines(csv, path)) {
    ScalingCell key{line["distribution"], line["scale"], line.number<Index>("d_k"), line.number<Index>("keys")};
    bool const same = !cells.empty() && cells.back().distribution == key.distribution && cells.back().scale == key.scale &&
                      cells.back().d_k == key.d_k && cells.back().keys == key.keys;
    if (!same) cells.push_back(std::move(key));
    std::size_t q = 0;
    while (q < quantities && name(static_cast<Quantity>(q)) != line["quantity"]) ++q;
    if (q == quantities) throw FileError(fmt::format("{}: '{}' is no quantity of this study", line.location(), line["quantity"]));
    auto& value = cells.back().values[q] = Measured{line.number("mean"), line.number("standard_error")};
    if (!line["theory"].empty()) value->theory = line.number("theory");
  }
  return cells;
}

CsvRows rows_of(std::vector<ScalingCell> const& cells) {
  CsvRows rows;
  for (auto const& cell : cells)
    for (std::size_t q = 0; q < quantities; ++q)
      if (auto const& value = cell.values[q])
        rows.push_back(line_of(cell.distribution, cell.scale, cell.d_k, cell.keys, name(static_cast<Quantity>(q)), value->mean,
                               value->standard_error, csv_number(value->theory)));
  return rows;
}

StudyResult report(SoftmaxScalingSettings const& settings, CsvRows const& rows) {
  auto result = result_of({"distribution", "scale", "d_k", "keys", "quantity", "mean", "standard_error", "theory"}, rows);
  auto const cells = cells_of(result.csv, "results.csv");
  show_growth(settings, cells, result);
  show_heads(settings, cells, result);
  show_limits(settings, cells, result);
  fit_slopes(settings, cells, result);
  compare_with_theory(settings, cells, result);
  add_findings(settings, cells, result);
  say_precision(settings, cells, result);
  return result;
}

}  // namespace heed
