#pragma once

#include <optional>
#include <string>

#include "experiments/report/gnuplot.hpp"
#include "experiments/report/material.hpp"

namespace heed {

// Figures of arms that combine the values of several keys: small panels, lines for the values of one key, one legend.

/// Each arm's mean and interval: one key along the axis, one as lines, a panel for each combination of the others. Lines that are not
/// parallel are an interaction.
std::optional<Figure> interaction(Material const& material, Grid const& grid);

/// A metric along training, or its paired differences to the baseline: lines for the key with most values, a panel for each combination of
/// the others. Nothing if there is nothing to draw.
std::optional<Figure> curve_panels(Material const& material, Grid const& grid, std::string const& metric, bool against_baseline);

}  // namespace heed
