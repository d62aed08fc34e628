#include "experiments/metric/info.hpp"

#include <algorithm>

namespace heed {

template void Registry<MetricInfo>::add(MetricInfo);

namespace {

/// Whether a name fits a pattern, in which each * stands for one letter or more.
bool fits(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (name.empty()) return false;
  if (pattern.front() != '*') return pattern.front() == name.front() && fits(pattern.substr(1), name.substr(1));
  return fits(pattern.substr(1), name.substr(1)) || fits(pattern, name.substr(1));
}

}  // namespace

std::string_view name(Better better) { return better == Better::higher ? "higher" : "lower"; }

MetricInfo const* find_metric(std::string_view name) {
  MetricInfo const* best = nullptr;
  auto const letters = [](MetricInfo const& info) {
    return info.name.size() - static_cast<std::size_t>(std::ranges::count(info.name, '*'));
  };
  for (auto const& info : Registry<MetricInfo>::all())
    if (fits(info.name, name) && (best == nullptr || letters(info) > letters(*best))) best = &info;
  return best;
}

Bounds bounds_of(std::string_view metric) {
  auto const* const info = find_metric(metric);
  return info == nullptr ? Bounds{} : info->bounds;
}

std::string with_unit(std::string const& metric) {
  auto const* const info = find_metric(metric);
  return info == nullptr || info->unit.empty() ? metric : metric + " (" + info->unit + ")";
}

}  // namespace heed
