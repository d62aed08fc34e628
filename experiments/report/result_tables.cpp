#include <algorithm>

#include <fmt/format.h>

#include "experiments/metric/info.hpp"
#include "experiments/report/ablation_result.hpp"

namespace heed {

TableRows AblationResult::arm_rows() const {
  auto const numbers = format();
  auto const shown = [](std::optional<double> value, double scale, int digits) {
    return value ? fmt::format("{:.{}f}", *value * scale, digits) : "";
  };
  TableRows rows{{"arm", with_unit(metric, unit), "95 % interval", "difference", "p", "paired t", "effect", "", "seeds", "s/run",
                  "tokens/s", "MB", "tuned"}};
  for (auto const& arm : arms) {
    auto& row = rows.emplace_back(std::vector<std::string>{arm.name, "–", "", "", "", "", "", ""});
    if (auto const& estimate = arm.estimate) {
      auto const& interval = estimate->interval;
      row[1] = numbers(estimate->mean);
      row[2] = interval ? numbers.interval(interval->low, interval->high) : std::isfinite(estimate->mean) ? "" : "none: infinite";
      if (arm.name == baseline) row[3] = "baseline";
    }
    if (auto const& c = arm.difference) {
      row[3] = shown_difference(numbers, c->mean, c->interval);
      row[4] = fmt::format("{:.2g}", c->p);
      if (c->p_t) row[5] = fmt::format("{:.2g}", *c->p_t);
      if (c->effect) row[6] = short_number(*c->effect, 1, true);
      row[7] = heed::name(c->verdict);
    }
    auto of_seeds =
        arm.values.size() == seeds.size() ? fmt::format("{}", seeds.size()) : fmt::format("{}/{}", arm.values.size(), seeds.size());
    if (!arm.diverged.empty()) of_seeds += fmt::format(" ({} diverged)", arm.diverged.size());
    row.insert(row.end(),
               {of_seeds, shown(arm.seconds, 1, 1), shown(arm.tokens_per_second, 1, 0), shown(arm.memory, 1e-6, 1), arm.tuned_words()});
  }
  return rows;
}

TableRows AblationResult::effect_rows(std::string const& head) const {
  auto const numbers = format();
  TableRows rows{{"effect", head, "p"}};
  bool const everywhere = over_all_combinations(effects);
  if (!everywhere) rows.front().emplace_back("combinations");
  for (auto const& effect : effects) {
    auto const& c = effect.comparison;
    rows.push_back({effect.name, shown_difference(numbers, c.mean, c.interval), fmt::format("{:.2g}", c.p)});
    if (!everywhere) rows.back().push_back(fmt::format("{} of {}", effect.averaged, effect.combinations));
  }
  return rows;
}

TableRows AblationResult::tuning_rows(std::string const& mark) const {
  auto const numbers = format();
  TableRows rows{{"arm"}};
  for (auto const& point : tuning->points) rows.front().push_back(point.name);
  for (auto const& arm : tuning->arms) {
    rows.push_back({arm.name});
    for (std::size_t point = 0; point < arm.scores.size(); ++point)
      rows.back().push_back((arm.scores[point] ? numbers(*arm.scores[point]) : "–") + (arm.chosen == point ? mark : ""));
  }
  return rows;
}

}  // namespace heed
