#include <fmt/format.h>

#include "experiments/metric/info.hpp"
#include "experiments/metric/key.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/page.hpp"

namespace heed {

namespace {

std::string last_values(Material const& material) {
  std::string body;
  for (auto const& [seed, history] : material.arms.front().histories) {
    for (auto const& [name, series] : history) {
      if (auto const key = MetricKey::of(name); !key.is_probe() && !key.is_cost())
        body += html_row({with_unit(name), fmt::format("{:.5g}", series.back().second), fmt::format("{}", series.back().first)});
    }
  }
  return html_table("Last values", {"metric", "last value", "at step"}, body);
}

/// The results of simple baselines.
std::string baselines(Material const& material) {
  std::string body;
  for (auto const& [name, metric, value] : material.baselines) {
    std::string difference;
    for (auto const& [seed, history] : material.arms.front().histories)
      if (auto const found = history.find(metric); found != history.end())
        difference = fmt::format("{:+.4f}", found->second.back().second - value);
    body += html_row({name, with_unit(metric), fmt::format("{:.4f}", value), difference});
  }
  if (body.empty()) return "";
  return "<h3>Baselines</h3>\n" + html_table("Baselines", {"baseline", "metric", "value", "this run − it"}, body);
}

std::string known_losses(Material const& material) {
  auto const& estimate = material.arms.front().estimate;
  std::string body;
  for (auto const& [name, loss] : material.reference_losses)
    body += html_row({name, fmt::format("{:.4f}", loss), estimate ? fmt::format("{:+.4f}", estimate->mean - loss) : ""});
  if (body.empty()) return "";
  return "<h3>Baselines</h3>\n" + html_table("Baselines", {"baseline", "loss (nat)", "this run − it"}, body);
}

}  // namespace

std::string run_tables(Material const& material) { return last_values(material) + baselines(material) + known_losses(material); }

}  // namespace heed
