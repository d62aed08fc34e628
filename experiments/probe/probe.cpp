#include "experiments/probe/probe.hpp"

#include <algorithm>
#include <tuple>

namespace heed {

namespace {

/// Never destroyed and made on first use: declarations are static objects of many files.
std::vector<Probe>& registry() {
  static auto* const all = new std::vector<Probe>;
  return *all;
}

}  // namespace

std::vector<Probe> const& probes() { return registry(); }

DeclaredProbe::DeclaredProbe(Probe probe) {
  DeclaredMetric const recorded(
      {"probe." + probe.records.name, probe.records.unit, probe.records.better, probe.formula + ", " + probe.help});
  auto const before = [](Probe const& a, Probe const& b) { return std::tie(a.group, a.name) < std::tie(b.group, b.name); };
  auto& all = registry();
  all.insert(std::ranges::upper_bound(all, probe, before), std::move(probe));
}

std::vector<std::string> const& asked_for(ProbeSettings const& settings, std::string_view group) {
  return group == "attention"     ? settings.attention
         : group == "gradients"   ? settings.gradients
         : group == "activations" ? settings.activations
                                  : settings.curvature;
}

}  // namespace heed
