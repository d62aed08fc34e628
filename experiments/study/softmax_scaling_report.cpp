// What the cells of softmax_scaling say together: agreement with theory, growth with d_k as slopes in double logarithms, and the limits for
// large d_k.

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "experiments/statistics.hpp"
#include "experiments/study/quadrature.hpp"
#include "experiments/study/softmax_scaling.hpp"

namespace heed {

namespace {

Cell const* find(std::vector<Cell> const& cells, std::string const& distribution, std::string const& scale, double d_k, double keys) {
  auto const found = std::ranges::find_if(cells, [&](Cell const& c) {
    return c.distribution == distribution && c.scale == scale && static_cast<double>(c.d_k) == d_k && static_cast<double>(c.keys) == keys;
  });
  return found == cells.end() ? nullptr : &*found;
}

std::string real(double value) { return fmt::format("{}", value); }

void write_rows(std::vector<Cell> const& cells, StudyResult& result) {
  result.csv.push_back({"distribution", "scale", "d_k", "keys", "quantity", "mean", "standard_error", "theory"});
  for (auto const& cell : cells) {
    for (std::size_t q = 0; q < quantities; ++q) {
      auto const& value = cell.values[q];
      if (!value) continue;
      result.csv.push_back({cell.distribution, cell.scale, std::to_string(cell.d_k), std::to_string(cell.keys),
                            name(static_cast<Quantity>(q)), real(value->mean), real(value->standard_error),
                            value->theory ? real(*value->theory) : ""});
    }
  }
}

/// How far measurements lie from theory, in standard errors.
void compare_with_theory(SoftmaxScalingSettings const& settings, std::vector<Cell> const& cells, StudyResult& result) {
  StudyTable table{"Agreement with theory, in standard errors", {{"distribution", "numbers", "farthest", "where", "mean of squares"}}};
  for (auto const& distribution : settings.distribution) {
    double worst = 0, squares = 0;
    std::size_t count = 0;
    std::string where;
    for (auto const& cell : cells) {
      for (std::size_t q = 0; q < quantities && cell.distribution == distribution; ++q) {
        auto const& value = cell.values[q];
        // What does not vary is measured exactly, but for rounding.
        if (!value || !value->theory || value->standard_error <= 1e-7 * std::abs(value->mean)) continue;
        double const z = (value->mean - *value->theory) / value->standard_error;
        squares += z * z;
        ++count;
        if (std::abs(z) <= worst) continue;
        worst = std::abs(z);
        where = fmt::format("{}, {}, d_k {}, {} keys", name(static_cast<Quantity>(q)), cell.scale, cell.d_k, cell.keys);
      }
    }
    if (count == 0) continue;
    double const mean = squares / static_cast<double>(count);
    table.rows.push_back({distribution, std::to_string(count), fmt::format("{:.2f}", worst), where, fmt::format("{:.3f}", mean)});
    result.figures.emplace_back(distribution + ".farthest", worst);
    result.figures.emplace_back(distribution + ".mean_square", mean);
  }
  if (table.rows.size() > 1) result.tables.push_back(std::move(table));
}

void say_precision(SoftmaxScalingSettings const& settings, std::vector<Cell> const& cells, StudyResult& result) {
  double largest = 0;
  std::size_t beyond = 0, count = 0;
  std::string where;
  for (auto const& cell : cells) {
    for (std::size_t q = 0; q < quantities; ++q) {
      auto const& value = cell.values[q];
      bool const of_run = cell.distribution.starts_with("layer");  // has only so many sequences
      if (!value || value->standard_error == 0 || of_run) continue;
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
  auto const undetermined = std::ranges::count_if(cells, [](Cell const& cell) { return cell.get(Quantity::frobenius_median) == nullptr; });
  if (undetermined > 0)
    result.sentences.push_back(
        fmt::format("{} medians of rademacher logits are left out: ‖J‖ takes few values there, and the median lies between two of them.",
                    undetermined));
  if (count > 0)
    result.sentences.push_back(fmt::format("The largest standard error is {:.2g} % of its quantity ({}); {} of {} are above {:.2g} %.",
                                           100 * largest, where, beyond, count, 100 * settings.precision));
}

/// The number of keys that tables show: 10 if it was measured.
double shown_keys(SoftmaxScalingSettings const& settings) {
  return std::ranges::find(settings.keys, 10.0) != settings.keys.end() ? 10 : settings.keys.front();
}

void show_growth(SoftmaxScalingSettings const& settings, std::vector<Cell> const& cells, StudyResult& result) {
  double const keys = shown_keys(settings);
  for (auto const& distribution : settings.distribution) {
    StudyTable table{fmt::format("{}, {} keys", distribution, keys), {{"d_k"}}};
    std::vector<std::pair<Quantity, char const*>> shown{
        {Quantity::trace, "tr J"}, {Quantity::frobenius_squared, "‖J‖²"}, {Quantity::frobenius_median, "median ‖J‖"}};
    if (distribution != "logits") shown.emplace_back(Quantity::query_gradient_squared, "‖∂p/∂q‖²");
    for (auto const& [q, what] : shown) {
      for (auto const& scale : settings.scale) table.rows.front().push_back(fmt::format("{} {}", what, scale));
    }
    for (double const d : settings.d_k) {
      table.rows.push_back({fmt::format("{}", d)});
      for (auto const& [q, what] : shown) {
        for (auto const& scale : settings.scale) {
          auto const* const cell = find(cells, distribution, scale, d, keys);
          auto const* const value = cell ? cell->get(q) : nullptr;
          table.rows.back().push_back(value ? fmt::format("{:.3g}", value->mean) : "");
        }
      }
    }
    result.tables.push_back(std::move(table));
  }
}

/// The heads of a trained run.
void show_heads(SoftmaxScalingSettings const& settings, std::vector<Cell> const& cells, StudyResult& result) {
  if (!settings.run) return;
  double const keys = shown_keys(settings);
  StudyTable table{fmt::format("{}, {} keys", *settings.run, keys), {{"head", "d_k", "scale"}}};
  std::vector const shown{Quantity::logit_variance,   Quantity::logit_kurtosis, Quantity::trace,
                          Quantity::frobenius_median, Quantity::entropy,        Quantity::query_gradient_squared};
  for (auto const q : shown) table.rows.front().push_back(name(q));
  for (auto const& cell : cells) {
    if (!cell.distribution.starts_with("layer") || static_cast<double>(cell.keys) != keys) continue;
    table.rows.push_back({cell.distribution, std::to_string(cell.d_k), cell.scale});
    for (auto const q : shown) table.rows.back().push_back(fmt::format("{:.3g}", cell.get(q)->mean));
  }
  result.tables.push_back(std::move(table));
}

/// Exponents: quantity ∝ d_k^slope over d_k ≥ 64.
void fit_slopes(SoftmaxScalingSettings const& settings, std::vector<Cell> const& cells, StudyResult& result) {
  std::vector<std::string> const head{"distribution", "scale", "keys", "quantity", "slope", "95 % interval", "theory"};
  StudyTable few{"Slopes in double logarithms over d_k ≥ 64, without a scale", {head}};
  StudyTable all{"Slopes in double logarithms over d_k ≥ 64", {head}, true};
  for (auto const& distribution : settings.distribution) {
    for (auto const& scale : settings.scale) {
      for (double const keys : settings.keys) {
        for (auto const q : {Quantity::trace, Quantity::frobenius_squared, Quantity::entropy, Quantity::query_gradient_squared,
                             Quantity::key_gradient_squared}) {
          std::vector<double> x, measured, theory;
          for (double const d : settings.d_k) {
            auto const* const cell = d >= 64 ? find(cells, distribution, scale, d, keys) : nullptr;
            auto const* const value = cell ? cell->get(q) : nullptr;
            if (!value || value->mean <= 0) continue;
            x.push_back(std::log(d));
            measured.push_back(std::log(value->mean));
            if (value->theory && *value->theory > 0) theory.push_back(std::log(*value->theory));
          }
          if (x.size() < 3) continue;
          Line const line = fit_line(x, measured);
          std::string const interval = line.interval ? fmt::format("{:.4f} … {:.4f}", line.interval->low, line.interval->high) : "";
          std::string const expected = theory.size() == x.size() ? fmt::format("{:.4f}", fit_line(x, theory).slope) : "";
          std::string const key = fmt::format("slope.{}.{}.{}.{}", distribution, scale, keys, name(q));
          result.figures.emplace_back(key, line.slope);
          if (line.interval) {
            result.figures.emplace_back(key + ".low", line.interval->low);
            result.figures.emplace_back(key + ".high", line.interval->high);
          }
          if (theory.size() == x.size()) result.figures.emplace_back(key + ".theory", fit_line(x, theory).slope);
          all.rows.push_back(
              {distribution, scale, fmt::format("{}", keys), name(q), fmt::format("{:.4f}", line.slope), interval, expected});
          if (keys == shown_keys(settings) && scale == "none") few.rows.push_back(all.rows.back());
        }
      }
    }
  }
  if (few.rows.size() > 1) result.tables.push_back(std::move(few));
  if (all.rows.size() > 1) result.tables.push_back(std::move(all));
}

/// Measurements at the largest d_k over their limits for d_k → ∞ without a scale (see expected_maximum).
void show_limits(SoftmaxScalingSettings const& settings, std::vector<Cell> const& cells, StudyResult& result) {
  double const d = *std::ranges::max_element(settings.d_k);
  if (d < 64 || std::ranges::find(settings.scale, "none") == settings.scale.end()) return;
  StudyTable table{
      fmt::format("Without a scale at d_k {}, over the limit for d_k → ∞", d),
      {{"distribution", "keys", "m_n", "tr J / (m_n/√d)", "‖J‖² / (m_n/3√d)", "H / (π²/6 m_n/√d)", "(1 − max p) / (ln 2 m_n/√d)"}},
      true};
  for (auto const& distribution : settings.distribution) {
    for (double const keys : settings.keys) {
      auto const* const cell = find(cells, distribution, "none", d, keys);
      if (!cell) continue;
      double const m = expected_maximum(cell->keys), limit = m / std::sqrt(d);
      auto const mean = [&](Quantity q) { return cell->get(q)->mean; };
      table.rows.push_back({distribution, fmt::format("{}", keys), fmt::format("{:.5f}", m),
                            fmt::format("{:.4f}", mean(Quantity::trace) / limit),
                            fmt::format("{:.4f}", mean(Quantity::frobenius_squared) / (limit / 3)),
                            fmt::format("{:.4f}", mean(Quantity::entropy) / (std::numbers::pi * std::numbers::pi / 6 * limit)),
                            fmt::format("{:.4f}", (1 - mean(Quantity::max_weight)) / (std::numbers::ln2 * limit))});
    }
  }
  result.tables.push_back(std::move(table));
}

}  // namespace

StudyResult report(SoftmaxScalingSettings const& settings, std::vector<Cell> const& cells) {
  StudyResult result;
  write_rows(cells, result);
  show_growth(settings, cells, result);
  show_heads(settings, cells, result);
  show_limits(settings, cells, result);
  fit_slopes(settings, cells, result);
  compare_with_theory(settings, cells, result);
  say_precision(settings, cells, result);
  return result;
}

}  // namespace heed
