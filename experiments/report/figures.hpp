#pragma once

#include <vector>

#include "experiments/report/gnuplot.hpp"
#include "experiments/report/material.hpp"

namespace heed {

/// Every figure that the material gives rise to: learning curves, differences to the baseline along training and at its end, the metric
/// over a varied number, and probes over layers and steps.
std::vector<Figure> figures(Material const& material);

}  // namespace heed
