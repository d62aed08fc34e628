#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "experiments/ablation/results.hpp"
#include "experiments/metric/info.hpp"

namespace heed {

std::string interval_cell(NumberFormat const& format, Estimate const& estimate) {
  if (estimate.interval) return format.interval(estimate.interval->low, estimate.interval->high);
  return std::isfinite(estimate.mean) ? "" : "none: infinite";
}

std::string seeds_cell(ArmResult const& arm, std::size_t asked) {
  auto text = arm.values.size() == asked ? fmt::format("{}", asked) : fmt::format("{}/{}", arm.values.size(), asked);
  if (!arm.diverged.empty()) text += fmt::format(" ({} diverged)", arm.diverged.size());
  return text;
}

std::string table_title(AblationResult const& result, std::string const& metric) {
  return fmt::format("{} ({}, {} is better), mean and 95 % interval over {} seeds", metric, result.at, result.better, result.seeds.size());
}

namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(AblationResult const& result) {
  auto const format = result.format();
  Rows rows{{"arm", with_unit(result.metric), "95 % interval", "difference", "p", "paired t", "effect", "", "seeds", "s/run", "tokens/s",
             "MB", "tuned"}};
  for (auto const& arm : result.arms) {
    std::vector<std::string> row{arm.name};
    if (auto const& estimate = arm.estimate)
      row.insert(row.end(), {format(estimate->mean), interval_cell(format, *estimate)});
    else
      row.insert(row.end(), {"–", ""});
    if (auto const& c = arm.difference)
      row.insert(row.end(),
                 {shown_difference(format, c->mean, c->interval), fmt::format("{:.2g}", c->p), c->p_t ? fmt::format("{:.2g}", *c->p_t) : "",
                  c->effect ? short_number(*c->effect, 1, true) : "", std::string(name(c->verdict))});
    else
      row.insert(row.end(), {arm.name == result.baseline && arm.estimate ? "baseline" : "", "", "", "", ""});
    row.push_back(seeds_cell(arm, result.seeds.size()));
    auto const cell = [](std::optional<double> value, double unit, int digits) {
      return value ? fmt::format("{:.{}f}", *value * unit, digits) : "";
    };
    row.push_back(cell(arm.seconds, 1, 1));
    row.push_back(cell(arm.tokens_per_second, 1, 0));
    row.push_back(cell(arm.memory, 1e-6, 1));
    row.push_back(arm.tuned_words());
    rows.push_back(std::move(row));
  }
  if (std::ranges::all_of(result.arms, [](ArmResult const& arm) { return arm.tuned.empty(); }))
    for (auto& row : rows) row.pop_back();
  return rows;
}

/// Explains the columns of p-values; "" if no arm is compared.
std::string columns_text(AblationResult const& result) {
  if (std::ranges::none_of(result.arms, [](ArmResult const& arm) { return arm.difference.has_value(); })) return "";
  return "p: sign-flip test, corrected for the number of arms; the verdicts use it. paired t: p of the t test of each arm alone, which "
         "assumes normally distributed differences. Equivalence tests, too, are of each arm alone";
}

/// The scores of the tuning grid, one column per point; the selected point is marked.
Rows tuning_rows(AblationResult const& result) {
  auto const format = result.format();
  Rows rows{{"arm"}};
  for (auto const& point : result.tuning->points) rows.front().push_back(point.name);
  for (auto const& arm : result.tuning->arms) {
    rows.push_back({arm.name});
    for (std::size_t point = 0; point < arm.scores.size(); ++point)
      rows.back().push_back((arm.scores[point] ? format(*arm.scores[point]) : "–") + (arm.chosen == point ? " *" : ""));
  }
  return rows;
}

std::string markdown_table(Rows const& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += markdown_row(rows[i]);
    if (i == 0) text += markdown_row(std::vector<std::string>(rows[i].size(), "---"));
  }
  return text;
}

Rows effect_rows(AblationResult const& result) {
  auto const format = result.format();
  Rows rows{{"effect", "difference", "p"}};
  bool const everywhere = over_all_combinations(result.effects);
  if (!everywhere) rows.front().emplace_back("combinations");
  for (auto const& effect : result.effects) {
    auto const& c = effect.comparison;
    rows.push_back({effect.name, shown_difference(format, c.mean, c.interval), fmt::format("{:.2g}", c.p)});
    if (!everywhere) rows.back().push_back(fmt::format("{} of {}", effect.averaged, effect.combinations));
  }
  return rows;
}

}  // namespace

std::string summary_page(std::string const& folder, AblationResult const& result) {
  std::string text = fmt::format("{}: {}\n\n", folder, table_title(result, result.metric));
  text += table(rows_of(result)) + "\n";
  if (auto const columns = columns_text(result); !columns.empty()) text += "  " + columns + "\n\n";
  for (auto const& line : result.sentences) text += "  " + line + "\n";
  for (auto const& line : result.warnings) text += "  warning: " + line + "\n";
  for (auto const& failure : result.failures)
    text += fmt::format("  failed: {}, seed {}: {}\n", failure.arm, failure.seed, failure.message);
  return text;
}

std::string summary_markdown(AblationResult const& result) {
  std::string text = fmt::format("# {}\n\n{}.\n\n", result.name, table_title(result, "`" + result.metric + "`"));
  text += markdown_table(rows_of(result));
  if (auto const columns = columns_text(result); !columns.empty()) text += "\n" + columns + "\n";
  if (!result.effects.empty()) text += "\n" + markdown_table(effect_rows(result));
  if (result.tuning)
    text += fmt::format("\nTuning, mean over {} separate seeds (* selected):\n\n", result.tuning->seeds.size()) +
            markdown_table(tuning_rows(result));
  text += '\n';
  for (auto const& line : result.sentences) text += "- " + line + "\n";
  for (auto const& line : result.warnings) text += "- **warning**: " + line + "\n";
  for (auto const& failure : result.failures)
    text += fmt::format("- **failed**: {}, seed {}: {}\n", failure.arm, failure.seed, failure.message);
  return text;
}

}  // namespace heed
