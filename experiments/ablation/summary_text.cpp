#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "experiments/ablation/summary.hpp"
#include "experiments/metric/info.hpp"

namespace heed {

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string interval_cell(NumberFormat const& format, Estimate const& mean) {
  if (mean.interval) return format.interval(mean.interval->low, mean.interval->high);
  return std::isfinite(mean.mean) ? "" : "none: infinite";
}

/// "6", "4/6", "6 (3 diverged)".
std::string seeds_cell(ArmResult const& arm, std::size_t asked) {
  auto text = arm.values.size() == asked ? fmt::format("{}", asked) : fmt::format("{}/{}", arm.values.size(), asked);
  if (!arm.diverged.empty()) text += fmt::format(" ({} diverged)", arm.diverged.size());
  return text;
}

Rows rows_of(Summary const& summary) {
  auto const& format = summary.format;
  Rows rows{{"arm", with_unit(summary.ablation.settings.metric), "95 % interval", "difference", "p", "paired t", "effect", "", "seeds",
             "s/run", "tokens/s", "MB", "tuned"}};
  for (std::size_t i = 0; i < summary.arms.size(); ++i) {
    auto const& arm = summary.arms[i];
    std::vector<std::string> row{arm.name};
    if (auto const& mean = summary.means[i])
      row.insert(row.end(), {format(mean->mean), interval_cell(format, *mean)});
    else
      row.insert(row.end(), {"–", ""});
    if (auto const& c = summary.comparisons[i])
      row.insert(row.end(),
                 {shown_difference(format, c->mean, c->interval), fmt::format("{:.2g}", c->p), c->p_t ? fmt::format("{:.2g}", *c->p_t) : "",
                  c->effect ? short_number(*c->effect, 1, true) : "", std::string(name(c->verdict))});
    else
      row.insert(row.end(), {i == summary.ablation.baseline && summary.means[i] ? "baseline" : "", "", "", "", ""});
    row.push_back(seeds_cell(arm, summary.ablation.seeds.size()));
    auto const cell = [](std::optional<double> value, double unit, int digits) {
      return value ? fmt::format("{:.{}f}", *value * unit, digits) : "";
    };
    row.push_back(cell(arm.cost("time.seconds"), 1, 1));
    row.push_back(cell(arm.cost("time.tokens_per_second"), 1, 0));
    row.push_back(cell(arm.cost("memory.peak"), 1e-6, 1));
    row.push_back(summary.tuned_words(i));
    rows.push_back(std::move(row));
  }
  if (summary.tuned.chosen.empty())
    for (auto& row : rows) row.pop_back();
  return rows;
}

/// What the columns of p-values are; nothing if no arm is compared.
std::string columns_said(Summary const& summary) {
  if (std::ranges::none_of(summary.comparisons, [](auto const& comparison) { return comparison.has_value(); })) return "";
  return "p: sign flips, corrected for the number of arms, by which verdicts go; paired t: p of the t test of each arm alone, which "
         "supposes "
         "normally distributed differences";
}

/// The scores of the tuning grid, a column a point; the chosen one is marked.
Rows tuning_rows(Summary const& summary) {
  auto const& points = summary.ablation.tuning->points;
  Rows rows{{"arm"}};
  for (auto const& point : points) rows.front().push_back(point.name);
  for (std::size_t i = 0; i < summary.arms.size(); ++i) {
    std::vector<std::string> row{summary.arms[i].name};
    for (std::size_t point = 0; point < points.size(); ++point) {
      auto const score = score_of(summary.ablation, summary.tuned, i, point);
      bool const chosen = i < summary.tuned.chosen.size() && summary.tuned.chosen[i] == point;
      row.push_back((score ? summary.format(*score) : "–") + (chosen ? " *" : ""));
    }
    rows.push_back(std::move(row));
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

Rows effect_rows(Summary const& summary) {
  Rows rows{{"effect", "difference", "p"}};
  bool const everywhere = over_all_combinations(summary.effects);
  if (!everywhere) rows.front().emplace_back("combinations");
  for (auto const& effect : summary.effects) {
    auto const& c = effect.comparison;
    rows.push_back({effect.name, shown_difference(summary.format, c.mean, c.interval), fmt::format("{:.2g}", c.p)});
    if (!everywhere) rows.back().push_back(fmt::format("{} of {}", effect.averaged, effect.combinations));
  }
  return rows;
}

std::string title(Summary const& summary, std::string const& metric) {
  auto const& settings = summary.ablation.settings;
  return fmt::format("{} ({}, {} is better), mean and 95 % interval over {} seeds", metric, summary.at(),
                     settings.higher_is_better() ? "higher" : "lower", summary.ablation.seeds.size());
}

}  // namespace

std::string summary_page(Summary const& summary) {
  std::string text = fmt::format("{}: {}\n\n", summary.ablation.folder().string(), title(summary, summary.ablation.settings.metric));
  text += table(rows_of(summary)) + "\n";
  if (auto const said = columns_said(summary); !said.empty()) text += "  " + said + "\n\n";
  for (auto const& line : summary.sentences) text += "  " + line + "\n";
  for (auto const& line : summary.warnings) text += "  warning: " + line + "\n";
  for (auto const& [who, job] : summary.failures) text += fmt::format("  failed: {}, seed {}: {}\n", who, job->seed, job->failure.message);
  return text;
}

std::string summary_markdown(Summary const& summary) {
  auto const& settings = summary.ablation.settings;
  std::string text = fmt::format("# {}\n\n{}.\n\n", settings.ablation, title(summary, "`" + settings.metric + "`"));
  text += markdown_table(rows_of(summary));
  if (auto const said = columns_said(summary); !said.empty()) text += "\n" + said + "\n";
  if (!summary.effects.empty()) text += "\n" + markdown_table(effect_rows(summary));
  if (!summary.tuned.names.empty())
    text += fmt::format("\nTuning, mean over {} seeds of its own (* chosen):\n\n", summary.ablation.tuning->seeds.size()) +
            markdown_table(tuning_rows(summary));
  text += '\n';
  for (auto const& line : summary.sentences) text += "- " + line + "\n";
  for (auto const& line : summary.warnings) text += "- **warning**: " + line + "\n";
  for (auto const& [who, job] : summary.failures)
    text += fmt::format("- **failed**: {}, seed {}: {}\n", who, job->seed, job->failure.message);
  return text;
}

}  // namespace heed
