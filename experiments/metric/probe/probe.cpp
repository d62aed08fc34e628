#include "experiments/metric/probe/probe.hpp"

#include <algorithm>
#include <tuple>

#include "autograd/attention/row_statistics.hpp"

namespace heed {

namespace {

/// Never destroyed and made on first use: declarations are static objects of many files.
std::vector<Probe>& registry() {
  static auto* const all = new std::vector<Probe>;
  return *all;
}

}  // namespace

Sight::Layer Sight::Layer::of(AttentionView const& view) {
  Tensor const visible = view.visibility.mask(view.weights.size(2), view.weights.size(3), view.weights.dtype());
  return {{attention_rows(view.scores, view.weights, visible, view.first_query())}, view.weights};
}

std::vector<Probe> const& probes() { return registry(); }

DeclaredProbe::DeclaredProbe(Probe probe) {
  DeclaredMetric const recorded(
      {"probe." + probe.records.name, probe.records.unit, probe.records.better, probe.formula + ", " + probe.help, probe.records.bounds});
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
