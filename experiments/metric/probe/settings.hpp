#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/settings.hpp"

namespace heed {

/// `maps:` attention maps written to disk.
struct MapSettings : Settings {
  Index examples = 0;
  Index every = 500;
  std::vector<Field> fields() override;
};

/// `probes:` the requested probes by group, by the names that are declared (experiments/metric/probe/probe.hpp).
struct ProbeSettings : Settings {
  Index every = 100;
  std::string batch = "validation";
  std::optional<Index> rows;  ///< of the probes' batch; default: the training batch's
  std::vector<std::string> attention, gradients, activations, curvature;
  Index iterations = 100;
  double tolerance = 0.02;
  MapSettings maps;

  bool any() const { return !attention.empty() || !gradients.empty() || !activations.empty() || !curvature.empty(); }
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// The probes requested in a group.
std::vector<std::string> const& asked_for(ProbeSettings const& settings, std::string_view group);

}  // namespace heed
