#include "experiments/train/selection.hpp"

#include <cmath>

#include <fmt/format.h>

#include "experiments/config/nearest.hpp"
#include "experiments/config/table.hpp"

namespace heed {

namespace {

Field metric_field(std::string* metric, std::string help) { return field(metric, "metric", std::move(help) + " (heed list metrics)"); }

/// Why nothing can be chosen by a metric; nothing if it can.
std::optional<std::string> unfit(std::string const& metric) {
  auto const* const info = find_metric(metric);
  std::vector<std::string> names;
  for (auto const& each : Registry<MetricInfo>::all())
    if (MetricKey::of(each.name).is_held_out() && each.better) names.push_back(each.name);
  if (info == nullptr || !MetricKey::of(metric).is_held_out())
    return fmt::format("metric: '{}' is not a metric of an evaluation{}", metric, did_you_mean(metric, names));
  if (!info->better) return fmt::format("metric: for '{}' neither higher nor lower is better", metric);
  return std::nullopt;
}

/// Whether value is better than an earlier one, if there is one, by more than `least`, or by it where that is above 0.
bool better(std::string const& metric, double value, std::optional<Selection::Best> const& than, double least) {
  if (std::isnan(value) || !than) return !std::isnan(value);
  double const gain = find_metric(metric)->better == Better::higher ? value - than->value : than->value - value;
  return least > 0 ? gain >= least : gain > 0;
}

}  // namespace

std::vector<Field> SelectSettings::fields() {
  return {metric_field(&metric, "metric of the evaluation by which the best weights are selected")};
}

std::optional<std::string> SelectSettings::contradiction() { return unfit(metric); }

std::vector<Field> StopSettings::fields() {
  return {metric_field(&metric, "metric of the evaluation that has to improve"),
          field(&patience, "patience", "number of evaluations without improvement after which the run ends; none: no early stopping")
              .in(1, 1e9),
          field(&least, "least", "smallest difference that counts as an improvement; 0: any").at_least(0)};
}

std::optional<std::string> StopSettings::contradiction() {
  if (auto const wrong = unfit(metric)) return wrong;
  if (!patience && (least != 0 || metric != StopSettings().metric))
    return fmt::format("{}: needs stop.patience", least != 0 ? "least" : "metric");
  return std::nullopt;
}

bool Selection::add(Row const& row) {
  if (double const* const value = row.find(stop_.metric); stop_.patience && value != nullptr) {  // towards the end of the run
    ++without_;
    if (better(stop_.metric, *value, reference_, stop_.least)) reference_ = {row.step, *value}, without_ = 0;
  }
  double const* const value = row.find(select_.metric);
  if (value == nullptr) return false;
  ++evaluations_;
  if (!better(select_.metric, *value, best_, 0)) return false;
  best_ = {row.step, *value, row};
  return true;
}

std::optional<std::string> Selection::stop() const {
  if (!stop_.patience || without_ < *stop_.patience) return std::nullopt;
  std::string const by = stop_.least > 0 ? fmt::format(" by {} or more", stop_.least) : "";
  if (!reference_) return fmt::format("{} was not a number in {} evaluations", stop_.metric, without_);
  return fmt::format("{} has not improved{} on the {} of step {} in {} evaluation{}", stop_.metric, by, short_number(reference_->value, 4),
                     reference_->step, without_, without_ == 1 ? "" : "s");
}

}  // namespace heed
