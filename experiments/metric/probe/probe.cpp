#include "experiments/metric/probe/probe.hpp"

#include <algorithm>
#include <tuple>

#include "autograd/attention/row_statistics.hpp"

namespace heed {

Sight::Layer Sight::Layer::of(AttentionView const& view) {
  Tensor const visible = view.visibility.mask(view.weights.size(2), view.weights.size(3), view.weights.dtype());
  return {{attention_rows(view.scores, view.weights, visible, view.first_query())}, view.weights};
}

void Probe::declare() const {
  Declared<MetricInfo>({"probe." + records.name, records.unit, records.better, formula + ", " + help, records.bounds});
}

std::vector<std::string> const& asked_for(ProbeSettings const& settings, std::string_view group) {
  return group == "attention"     ? settings.attention
         : group == "gradients"   ? settings.gradients
         : group == "activations" ? settings.activations
                                  : settings.curvature;
}

}  // namespace heed
