#include "experiments/metric/metric.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace heed {

namespace {

/// Never destroyed and made on first use: declarations are static objects of many files.
std::vector<MetricKind>& kinds() {
  static auto* const all = new std::vector<MetricKind>;
  return *all;
}

}  // namespace

DeclaredMetricKind::DeclaredMetricKind(MetricKind kind) {
  auto const& [name, unit, better, help, bounds] = kind.info;
  DeclaredMetric({"validation." + name, unit, better, help, bounds});
  DeclaredMetric({"validation.ema." + name, unit, better, help + "; of averaged weights", bounds});
  auto& all = kinds();
  auto const place = [](MetricKind const& each) {
    return std::tuple(each.always.value_or(std::numeric_limits<int>::max()), each.info.name);
  };
  all.insert(std::ranges::upper_bound(all, place(kind), {}, place), std::move(kind));
}

std::vector<MetricKind> const& metric_kinds() { return kinds(); }

std::vector<std::string> metric_kind_names() {
  std::vector<std::string> names;
  for (auto const& kind : kinds()) names.push_back(kind.info.name);
  return names;
}

MetricKind const* find_metric_kind(std::string_view name) {
  auto const found = std::ranges::find(kinds(), name, [](MetricKind const& kind) -> std::string_view { return kind.info.name; });
  return found == kinds().end() ? nullptr : &*found;
}

}  // namespace heed
