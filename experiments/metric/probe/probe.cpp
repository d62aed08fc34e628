#include "experiments/metric/probe/probe.hpp"

#include <algorithm>
#include <tuple>

namespace heed {

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
