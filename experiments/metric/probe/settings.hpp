#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
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
  std::map<std::string, std::vector<std::string>> asked{{"attention", {}}, {"gradients", {}}, {"activations", {}}, {"curvature", {}}};
  Index iterations = 100;
  double tolerance = 0.02;
  MapSettings maps;

  bool any() const {
    return std::ranges::any_of(asked, [](auto const& group) { return !group.second.empty(); });
  }
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

}  // namespace heed
