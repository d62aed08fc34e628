#include "experiments/metric/metric.hpp"

namespace heed {

void MetricKind::declare() const {
  auto const& [name, unit, better, help, bounds] = info;
  Declared<MetricInfo>({"validation." + name, unit, better, help, bounds});
  Declared<MetricInfo>({"validation.ema." + name, unit, better, help + "; of averaged weights", bounds});
}

}  // namespace heed
